// The motion field, against the vectors that FFmpeg exports in a plain loop on one thread.
#include <algorithm>
#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/clip.h"

namespace vigil::media {
namespace {

ReadOptions options(double fps, int threads) {
  ReadOptions result;
  result.fps = fps;
  result.threads = threads;
  result.pixels = false;
  return result;
}

struct Case {
  const char* codec;
  const char* file;
  int b_frames;
  Size size;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.codec << " in " << one.file;
}

class EveryCodec : public testing::TestWithParam<Case> {};

// All vectors of all frames up to the last sample, each once, each in its own frame, on any number of
// threads.
TEST_P(EveryCodec, NoVectorIsLostBetweenSamples) {
  const Scratch scratch;
  Clip clip;
  clip.codec = GetParam().codec;
  clip.b_frames = GetParam().b_frames;
  clip.size = GetParam().size;
  clip.frames = 90;
  const std::string path = scratch / GetParam().file;
  write_clip(path, clip);
  const std::vector<OracleFrame> oracle = oracle_decode(path);
  ASSERT_GE(oracle.size(), 85u);
  std::size_t total = 0;
  for (const OracleFrame& frame : oracle) total += frame.vectors;
  ASSERT_GT(total, 1000u) << "the clip has no motion to lose";

  for (const int threads : {1, 2, 4}) {
    for (const double fps : {2.0, 1e9}) {
      const ReadResult result = read_all(path, options(fps, threads));
      EXPECT_TRUE(result.info.exports_motion);
      ASSERT_FALSE(result.samples.empty());
      std::size_t index = 0;
      for (const SampledFrame& sample : result.samples) {
        EXPECT_TRUE(sample.motion->available);
        EXPECT_EQ(sample.motion->width, clip.size.width);
        EXPECT_EQ(sample.motion->height, clip.size.height);
        ASSERT_FALSE(sample.motion->frames.empty());
        EXPECT_EQ(sample.motion->frames.back().seconds, sample.seconds);
        EXPECT_EQ(sample.motion->frames.back().type, sample.type);
        for (const FrameMotion& frame : sample.motion->frames) {
          ASSERT_LT(index, oracle.size());
          const OracleFrame& wanted = oracle[index++];
          EXPECT_EQ(frame.vectors.size(), wanted.vectors) << "frame " << index << " threads " << threads;
          EXPECT_EQ(vectors_hash(frame), wanted.vectors_hash) << "frame " << index << " threads " << threads;
          EXPECT_EQ(frame.intra, wanted.type == 'I');
          EXPECT_EQ(frame.type == FrameType::bidirectional, wanted.type == 'B');
          if (wanted.timestamp == AV_NOPTS_VALUE) continue;
          EXPECT_NEAR(frame.seconds, wanted.seconds - oracle.front().seconds, 1e-3);
        }
      }
      EXPECT_GE(index, fps > 2 ? oracle.size() : oracle.size() - 13);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Media, EveryCodec,
                         testing::Values(Case{"libx264", "p.mp4", 0, {192, 128}},     //
                                         Case{"libx264", "b.mp4", 3, {640, 352}},     //
                                         Case{"libx264", "b.ts", 2, {320, 240}},      //
                                         Case{"mpeg4", "p4.mp4", 0, {192, 128}},      //
                                         Case{"mpeg4", "b4.avi", 2, {640, 352}},      //
                                         Case{"mpeg2video", "b2.ts", 2, {640, 352}},  //
                                         Case{"mpeg1video", "b1.mpg", 2, {192, 128}},
                                         Case{"flv", "f.flv", 0, {192, 128}},         //
                                         Case{"h263p", "h.mkv", 0, {192, 128}},       //
                                         Case{"msmpeg4v2", "m2.avi", 0, {192, 128}},  //
                                         Case{"msmpeg4", "m3.avi", 0, {192, 128}},    //
                                         Case{"wmv1", "w1.avi", 0, {192, 128}},       //
                                         Case{"wmv2", "w2.avi", 0, {192, 128}},       //
                                         Case{"rv10", "r1.rm", 0, {192, 128}},        //
                                         Case{"rv20", "r2.rm", 0, {192, 128}}));

// The real clips that are in the repository's test data would do too; this one needs none.
TEST(Motion, PointsFromABlockToWhereItWas) {
  const Scratch scratch;
  Clip clip;
  clip.size = {320, 256};
  clip.frames = 20;
  write_clip(scratch / "a.mp4", clip);
  const ReadResult result = read_all(scratch / "a.mp4", options(1e9, 1));
  int seen = 0;
  for (std::size_t i = 1; i < result.samples.size(); ++i) {
    const FrameMotion& frame = result.samples[i].motion->frames.back();
    if (frame.intra) {
      EXPECT_TRUE(frame.vectors.empty());
      continue;
    }
    // As the clip's maker moves the square: 4 right and 2 down a frame, of 48 pixels.
    const int left = (16 + 4 * static_cast<int>(i)) % (320 - 48);
    const int top = (8 + 2 * static_cast<int>(i)) % (256 - 48);
    std::size_t area = 0;
    for (const MotionVector& v : frame.vectors) {
      EXPECT_EQ(v.scale, 4) << "H.264 has quarter pixels";
      EXPECT_LT(v.reference, 0);
      // A block's corner is a corner: on its grid, in the picture.
      EXPECT_EQ(v.x % v.width, 0);
      EXPECT_EQ(v.y % v.height, 0);
      EXPECT_GE(v.x, 0);
      EXPECT_LE(v.x + v.width, 320);
      EXPECT_GE(v.y, 0);
      EXPECT_LE(v.y + v.height, 256);
      area += static_cast<std::size_t>(v.width) * v.height;
      const bool inside =
          v.x >= left && v.x + v.width <= left + 48 && v.y >= top && v.y + v.height <= top + 48;
      if (inside && v.reference == -1 && std::abs(v.dx_pixels() + 4) < 0.3 &&
          std::abs(v.dy_pixels() + 2) < 0.3)
        ++seen;
    }
    EXPECT_LE(area, 320u * 256u);
  }
  EXPECT_GT(seen, 30);
}

TEST(Motion, CodecsWithoutVectorsSaySo) {
  const Scratch scratch;
  for (const auto& [codec, file] :
       std::map<std::string, std::string>{{"libvpx-vp9", "v.webm"}, {"mjpeg", "m.avi"}, {"ffv1", "f.mkv"}}) {
    Clip clip;
    clip.codec = codec;
    clip.frames = 30;
    if (codec == "mjpeg") clip.format = AV_PIX_FMT_YUVJ420P;
    write_clip(scratch / file, clip);
    const ReadResult result = read_all(scratch / file, options(2, 2));
    EXPECT_FALSE(result.info.exports_motion) << codec;
    ASSERT_EQ(result.samples.size(), 3u) << codec;
    for (const SampledFrame& sample : result.samples) {
      ASSERT_NE(sample.motion, nullptr);
      EXPECT_FALSE(sample.motion->available);
      EXPECT_FALSE(sample.motion->frames.empty());
      for (const FrameMotion& frame : sample.motion->frames) EXPECT_TRUE(frame.vectors.empty());
    }
  }
}

TEST(Motion, IsLeftOutWhenNotWanted) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  ReadOptions without = options(2, 1);
  without.motion = false;
  for (const SampledFrame& sample : read_all(scratch / "a.mp4", without).samples) {
    EXPECT_FALSE(sample.motion->available);
    for (const FrameMotion& frame : sample.motion->frames) EXPECT_TRUE(frame.vectors.empty());
  }
}

}  // namespace
}  // namespace vigil::media
