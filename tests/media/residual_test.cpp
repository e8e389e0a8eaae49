// How far blocks are from their predictions: beside codecs whose residual is known, and beside a second
// writing over FFmpeg's own frames and vectors.
#include "media/residual.h"

extern "C" {
#include <libavutil/motion_vector.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/group_motion.h"
#include "tests/media/clip.h"

namespace vigil::media {
namespace {

using testing::IsEmpty;

constexpr float kUnmeasured = std::numeric_limits<float>::infinity();

ReadOptions every_frame() {
  ReadOptions options;
  options.fps = 1e9;
  options.pixels = false;
  options.residual = true;
  return options;
}

std::vector<FrameMotion> frames_of(const std::string& path, const ReadOptions& options) {
  std::vector<FrameMotion> frames;
  const auto reader = VideoReader::open(path, options);
  while (const auto sample = reader->next())
    frames.insert(frames.end(), sample->motion->frames.begin(), sample->motion->frames.end());
  frames.insert(frames.end(), reader->rest().begin(), reader->rest().end());
  return frames;
}

/// Mean difference of a pixel that is predicted.
double per_pixel(const FrameMotion& frame) {
  double sum = 0, pixels = 0;
  for (const BlockResidual& block : frame.residual) {
    sum += block.difference;
    pixels += block.width * block.height;
  }
  return pixels > 0 ? sum / pixels : 0;
}

int texture(int x, int y) {
  return static_cast<int>(128 + 60 * std::sin(0.23 * x) * std::cos(0.19 * y) +
                          40 * std::sin(0.11 * x + 0.31 * y));
}

// What is only shifted by whole pixels is its prediction, but for what coding it has changed.
TEST(ResidualTest, OfAPictureThatPansByWholePixelsThereIsMotionAndNoResidual) {
  const Scratch scratch;
  Clip clip;
  clip.size = {208, 144};
  clip.frames = 12;
  clip.gop = 100;
  clip.options = {{"x264-params", "no-deblock=1:qp=12:ref=1:bframes=0:scenecut=0:subme=2"}};
  clip.brightness = [](int i, int x, int y) { return texture(x + 4 * i, y - 2 * i); };
  write_clip(scratch / "pan.mp4", clip);
  const std::vector<FrameMotion> frames = frames_of(scratch / "pan.mp4", every_frame());
  ASSERT_EQ(frames.size(), 12U);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    int moved = 0;
    double sum = 0;
    for (std::size_t k = 0; k < frames[i].vectors.size(); ++k) {
      const MotionVector& v = frames[i].vectors[k];
      if (v.dx != 16 || v.dy != -8) continue;
      ++moved;
      ASSERT_EQ(frames[i].residual[k].x, v.x);
      sum += frames[i].residual[k].difference / static_cast<float>(v.width * v.height);
    }
    EXPECT_GT(moved, 40) << "frame " << i << " pans";
    EXPECT_LT(sum / moved, 0.8) << "frame " << i << ": levels a pixel";
  }
  double still = 0;
  for (int y = 0; y < 144; ++y)
    for (int x = 0; x < 208; ++x) still += std::abs(texture(x + 4, y - 2) - texture(x, y));
  EXPECT_GT(still / (208 * 144), 15) << "where it was, there is another picture";
}

// Without motion search all vectors are zero: what the light does is residual alone.
TEST(ResidualTest, OfAJumpOfTheLightThereIsResidualAndNoMotion) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "mpeg4";
  clip.size = {190, 138};
  clip.frames = 12;
  clip.gop = 100;
  clip.options = {{"motion_est", "zero"}, {"qmin", "2"}, {"qmax", "2"}};
  clip.brightness = [](int i, int x, int y) {
    return std::clamp(texture(x, y) / 2 + (i >= 6 && x < 96 ? 60 : 40), 0, 255);
  };
  write_clip(scratch / "light.avi", clip);
  const std::vector<FrameMotion> frames = frames_of(scratch / "light.avi", every_frame());
  ASSERT_EQ(frames.size(), 12U);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const std::vector<float> motion = group_motion(frames[i], 1, 2),
                             residual = group_residual(frames[i], 1, 2);
    ASSERT_EQ(residual.size(), 2U);
    const float pixels = 95 * 138;
    EXPECT_EQ(motion[0], 0) << "frame " << i;
    EXPECT_NEAR(residual[0] / pixels, i == 6 ? 20 : 0, 1.5) << "frame " << i;
    EXPECT_LT(residual[1] / pixels, 1.5) << "frame " << i;
  }
}

struct Case {
  const char* codec;
  const char* file;
  int b_frames;
  Size size;
  std::map<std::string, std::string> options = {};
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.codec << " in " << one.file;
}

class EveryResidual : public testing::TestWithParam<Case> {};

/// Luma of a frame, as FFmpeg alone decodes it.
struct Picture {
  char type = '?';
  int width = 0, height = 0;
  std::vector<std::uint8_t> luma;
  std::vector<AVMotionVector> vectors;

  /// Between pixels, clamped to the edges.
  double at(double x, double y) const {
    const auto pixel = [this](double px, double py) {
      const auto cx = static_cast<std::size_t>(std::clamp(px, 0.0, width - 1.0));
      const auto cy = static_cast<std::size_t>(std::clamp(py, 0.0, height - 1.0));
      return double{luma[cy * static_cast<std::size_t>(width) + cx] * 1.0};
    };
    const double left = std::floor(x), top = std::floor(y), fx = x - left, fy = y - top;
    return (1 - fy) * ((1 - fx) * pixel(left, top) + fx * pixel(left + 1, top)) +
           fy * ((1 - fx) * pixel(left, top + 1) + fx * pixel(left + 1, top + 1));
  }
};

// Of codecs with one reference each way it is no question which frame is meant.
TEST_P(EveryResidual, IsWhatEveryPixelSays) {
  const Scratch scratch;
  Clip clip;
  clip.codec = GetParam().codec;
  clip.b_frames = GetParam().b_frames;
  clip.size = GetParam().size;
  clip.options = GetParam().options;
  clip.frames = 26;
  const std::string path = scratch / GetParam().file;
  write_clip(path, clip);
  std::vector<Picture> pictures;
  oracle_decode(path, [&pictures](const AVFrame& frame) {
    Picture picture{av_get_picture_type_char(frame.pict_type), frame.width, frame.height, {}, {}};
    for (int y = 0; y < frame.height; ++y)
      picture.luma.insert(picture.luma.end(), frame.data[0] + y * frame.linesize[0],
                          frame.data[0] + y * frame.linesize[0] + frame.width);
    if (const auto* side = av_frame_get_side_data(&frame, AV_FRAME_DATA_MOTION_VECTORS)) {
      const auto* vectors = reinterpret_cast<const AVMotionVector*>(side->data);
      picture.vectors.assign(vectors, vectors + side->size / sizeof(AVMotionVector));
    }
    pictures.push_back(std::move(picture));
  });
  const std::vector<FrameMotion> frames = frames_of(path, every_frame());
  ASSERT_EQ(frames.size(), pictures.size());

  int blocks = 0, in_b_frames = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Picture& picture = pictures[i];
    EXPECT_EQ(frames[i].measured, picture.type != 'I');
    if (picture.type == 'I') continue;
    const Picture *before = nullptr, *after = nullptr;
    for (std::size_t k = 0; k < i; ++k)
      if (pictures[k].type != 'B') before = &pictures[k];
    for (std::size_t k = pictures.size() - 1; k > i; --k)
      if (pictures[k].type != 'B' && picture.type == 'B') after = &pictures[k];
    for (const BlockResidual& block : frames[i].residual) {
      std::vector<const AVMotionVector*> vectors;
      for (const AVMotionVector& v : picture.vectors)
        if (v.dst_x - v.w / 2 == block.x && v.dst_y - v.h / 2 == block.y && v.w == block.width &&
            v.h == block.height)
          vectors.push_back(&v);
      ASSERT_GE(vectors.size(), 1U);
      ASSERT_LE(vectors.size(), 2U);
      double sums[3] = {0, 0, 0};
      int pixels = 0;
      for (int y = std::max<int>(0, block.y); y < std::min(picture.height, block.y + block.height); ++y)
        for (int x = std::max<int>(0, block.x); x < std::min(picture.width, block.x + block.width); ++x) {
          double predicted[2] = {0, 0};
          for (std::size_t k = 0; k < vectors.size(); ++k) {
            const Picture* reference = vectors[k]->source < 0 ? before : after;
            ASSERT_NE(reference, nullptr);
            const double scale = vectors[k]->motion_scale;
            predicted[k] = reference->at(x + vectors[k]->motion_x / scale, y + vectors[k]->motion_y / scale);
          }
          const double value = picture.at(x, y);
          sums[0] += std::abs(value - predicted[0]);
          sums[1] += std::abs(value - predicted[1]);
          sums[2] += std::abs(value - (predicted[0] + predicted[1]) / 2);
          ++pixels;
        }
      const double expected = vectors.size() == 1 ? sums[0] : *std::min_element(sums, sums + 3);
      // Predictions are rounded to levels.
      ASSERT_NEAR(block.difference, expected, (vectors.size() == 1 ? 0.5 : 1.0) * pixels + 1e-3)
          << "frame " << i << " of type " << picture.type << ", block at " << block.x << ", " << block.y;
      ++blocks;
      in_b_frames += picture.type == 'B' && vectors.size() == 2;
    }
  }
  EXPECT_GT(blocks, 500);
  EXPECT_EQ(in_b_frames > 50, GetParam().b_frames > 0) << in_b_frames << " blocks have two vectors";
}

INSTANTIATE_TEST_SUITE_P(
    Media, EveryResidual,
    testing::Values(
        Case{"libx264", "p.mp4", 0, {192, 128}, {{"x264-params", "ref=1:bframes=0:scenecut=0"}}},
        Case{"libx264", "odd.mp4", 0, {202, 134}, {{"x264-params", "ref=1:bframes=0:scenecut=0"}}},
        Case{"libx264", "b.mp4", 2, {192, 128}, {{"x264-params", "ref=1:b-pyramid=0:scenecut=0"}}},
        Case{"mpeg4", "b4.avi", 2, {208, 144}},      //
        Case{"mpeg4", "odd4.avi", 0, {190, 122}},    //
        Case{"mpeg2video", "b2.ts", 2, {192, 128}},  //
        Case{"flv", "f.flv", 0, {192, 128}}));

// The codec's own prediction is the oracle: where mpeg4 codes no difference, and it has no filter, a block is
// its prediction, but for the rounding that alternates from frame to frame.
TEST(ResidualTest, WhatAHalfPixelCodecLeavesUncodedIsItsPrediction) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "mpeg4";
  clip.size = {192, 128};
  clip.frames = 12;
  clip.gop = 100;
  clip.options = {{"qmin", "31"}, {"qmax", "31"}};
  clip.brightness = [](int i, int x, int y) { return texture((2 * x + 3 * i) / 2, y); };
  write_clip(scratch / "half.avi", clip);
  int uncoded = 0, halves = 0;
  for (const FrameMotion& frame : frames_of(scratch / "half.avi", every_frame()))
    for (std::size_t k = 0; k < frame.residual.size(); ++k) {
      const MotionVector& v = frame.vectors[k];
      if (frame.residual[k].difference > static_cast<float>(v.width * v.height)) continue;
      ++uncoded;
      halves += v.dx % v.scale != 0;
    }
  EXPECT_GT(uncoded, 300);
  EXPECT_GT(halves, 100) << "of these, between two pixels";
}

TEST(ResidualTest, DependsNeitherOnThreadsNorOnWhatIsSampled) {
  const Scratch scratch;
  Clip clip;
  clip.b_frames = 3;
  clip.size = {320, 240};
  write_clip(scratch / "a.mp4", clip);
  const std::vector<FrameMotion> expected = frames_of(scratch / "a.mp4", every_frame());
  ASSERT_EQ(expected.size(), 50U);
  for (const int threads : {1, 3})
    for (const double fps : {2.0, 7.0}) {
      ReadOptions options = every_frame();
      options.threads = threads;
      options.fps = fps;
      options.pixels = threads == 3;
      const std::vector<FrameMotion> frames = frames_of(scratch / "a.mp4", options);
      ASSERT_EQ(frames.size(), expected.size());
      for (std::size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(frames[i].seconds, expected[i].seconds);
        EXPECT_EQ(frames[i].measured, !frames[i].intra);
        ASSERT_EQ(frames[i].residual.size(), expected[i].residual.size());
        EXPECT_EQ(per_pixel(frames[i]), per_pixel(expected[i])) << "frame " << i << ", threads " << threads;
      }
    }
}

TEST(ResidualTest, SamplesAreTheSameWithAndWithoutIt) {
  const Scratch scratch;
  Clip clip;
  clip.b_frames = 2;
  write_clip(scratch / "a.ts", clip);
  ReadOptions options;
  options.fps = 5;
  const ReadResult without = read_all(scratch / "a.ts", options);
  options.residual = true;
  const ReadResult with = read_all(scratch / "a.ts", options);
  ASSERT_EQ(with.samples.size(), without.samples.size());
  EXPECT_EQ(with.stats.decoded_frames, without.stats.decoded_frames);
  for (std::size_t i = 0; i < with.samples.size(); ++i) {
    EXPECT_EQ(with.samples[i].seconds, without.samples[i].seconds);
    EXPECT_EQ(with.samples[i].timestamp, without.samples[i].timestamp);
    EXPECT_EQ(with.samples[i].image->rgb, without.samples[i].image->rgb);
    ASSERT_EQ(with.samples[i].motion->frames.size(), without.samples[i].motion->frames.size());
    for (const FrameMotion& frame : without.samples[i].motion->frames) {
      EXPECT_FALSE(frame.measured);
      EXPECT_THAT(frame.residual, IsEmpty());
    }
  }
}

TEST(ResidualTest, CodecsWithoutVectorsHaveNone) {
  const Scratch scratch;
  for (const auto& [codec, file] :
       std::map<std::string, std::string>{{"libvpx-vp9", "v.webm"}, {"mjpeg", "m.avi"}}) {
    Clip clip;
    clip.codec = codec;
    clip.frames = 12;
    if (codec == "mjpeg") clip.format = AV_PIX_FMT_YUVJ420P;
    write_clip(scratch / file, clip);
    const std::vector<FrameMotion> frames = frames_of(scratch / file, every_frame());
    ASSERT_EQ(frames.size(), 12U) << codec;
    for (const FrameMotion& frame : frames) {
      EXPECT_FALSE(frame.measured) << codec;
      EXPECT_THAT(group_residual(frame, 4, 4), IsEmpty()) << codec;
    }
  }
}

TEST(ResidualTest, NeedsMotion) {
  ReadOptions options = every_frame();
  options.motion = false;
  EXPECT_THROW(VideoReader::open("a.mp4", options), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::media
