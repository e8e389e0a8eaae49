// Sampling, times and pictures of sound files, against FFmpeg's own plain decoding.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "media/scaler.h"
#include "tests/media/clip.h"

namespace vigil::media {
namespace {

ReadOptions options(double fps, int threads = 1, Size size = {}) {
  ReadOptions result;
  result.fps = fps;
  result.threads = threads;
  if (size.width > 0) result.size = [size](Size) { return size; };
  return result;
}

std::vector<double> seconds_of(const std::vector<SampledFrame>& samples) {
  std::vector<double> seconds;
  for (const SampledFrame& sample : samples) seconds.push_back(sample.seconds);
  return seconds;
}

// The definition, by brute force: at each sample time the last frame that is not later.
std::vector<double> shown_at(const std::vector<OracleFrame>& frames, double fps, double usual_duration) {
  std::vector<double> wanted;
  // Until when the last frame is shown, some containers tell.
  const double last = frames.back().duration > 0 ? frames.back().duration : usual_duration;
  const double end = frames.back().seconds - frames.front().seconds + last;
  for (int k = 0; k / fps < end - 0.002; ++k) {
    double shown = 0;
    for (const OracleFrame& frame : frames) {
      const double seconds = frame.seconds - frames.front().seconds;
      if (seconds <= k / fps + 0.002) shown = seconds;
    }
    if (wanted.empty() || shown > wanted.back()) wanted.push_back(shown);
  }
  return wanted;
}

MATCHER(NearTime, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-4;
}

std::int64_t uneven(int i) {
  return i * 40 + (i * i * 7) % 23 + (i > 20 ? 700 : 0) + (i > 33 ? 1900 : 0);
}

TEST(Reader, SamplesByTimestampUnderVariableRateAndBFrames) {
  const Scratch scratch;
  for (const char* name : {"vfr.mp4", "vfr.mkv"}) {
    Clip clip;
    clip.b_frames = 3;
    clip.time = uneven;
    write_clip(scratch / name, clip);
    const std::vector<OracleFrame> oracle = oracle_decode(scratch / name);
    ASSERT_EQ(oracle.size(), 50u);
    for (const double fps : {2.0, 5.0, 0.7, 12.5}) {
      for (const int threads : {1, 3}) {
        const ReadResult result = read_all(scratch / name, options(fps, threads));
        EXPECT_THAT(seconds_of(result.samples),
                    testing::Pointwise(NearTime(), shown_at(oracle, fps, 1 / result.info.average_fps)))
            << name << " at " << fps << " with " << threads;
        EXPECT_EQ(result.stats.damaged_packets, 0u);
        EXPECT_EQ(result.stats.last_damage, "");
        EXPECT_EQ(result.stats.decoded_frames, 50u);
        EXPECT_EQ(result.stats.timestamp_jumps, 0u);
      }
    }
  }
}

TEST(Reader, NumbersSamplesAndTellsWhereTheyAreFrom) {
  const Scratch scratch;
  const std::string path = scratch / "a.mp4";
  write_clip(path, {});
  const ReadResult result = read_all(path, options(2));
  ASSERT_EQ(result.samples.size(), 4u);
  const std::vector<OracleFrame> oracle = oracle_decode(path);
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    const SampledFrame& sample = result.samples[i];
    EXPECT_EQ(sample.sequence, i);
    EXPECT_EQ(*sample.source, path);
    EXPECT_EQ(sample.source_size, (Size{192, 128}));
    EXPECT_EQ(sample.image->size, (Size{192, 128}));
    EXPECT_EQ(sample.image->rgb.size(), 192u * 128 * 3);
    // Frames 0, 12, 25 and 37: the last ones not after 0, 0.5, 1 and 1.5 s. Every twelfth is an I frame.
    const char type = oracle[static_cast<std::size_t>(std::lround(sample.seconds * 25))].type;
    EXPECT_EQ(sample.type, type == 'I' ? FrameType::intra : FrameType::predicted);
  }
  EXPECT_EQ(result.stats.sampled_frames, 4u);
  EXPECT_EQ(result.info.codec, "h264");
  EXPECT_EQ(result.info.size, (Size{192, 128}));
  EXPECT_NEAR(result.info.average_fps, 25, 1e-9);
  EXPECT_NEAR(result.info.duration_seconds, 2, 0.05);
  EXPECT_TRUE(result.info.exports_motion);
}

TEST(Reader, ARateAboveTheSourcesYieldsEveryFrameOnce) {
  const Scratch scratch;
  Clip clip;
  clip.b_frames = 2;
  write_clip(scratch / "a.mkv", clip);
  for (const double fps : {25.0, 1000.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(read_all(scratch / "a.mkv", options(fps, 2)).samples.size(), 50u) << fps;
  }
}

// Frames that are seen by nobody are not deblocked, and without motion not decoded: the samples must not show
// it.
TEST(Reader, SampledPixelsAreThoseOfAFullDecode) {
  const Scratch scratch;
  for (const bool variable : {false, true}) {
    Clip clip;
    clip.frames = 120;
    clip.b_frames = 4;
    clip.options = {{"b-pyramid", "normal"}, {"qp", "40"}};
    if (variable) clip.time = uneven;
    write_clip(scratch / "b.mp4", clip);
    std::vector<Image> all;
    Scaler scaler;
    const std::vector<OracleFrame> oracle = oracle_decode(scratch / "b.mp4", [&](const AVFrame& frame) {
      all.push_back(scaler.convert(frame, {96, 80}));
    });
    ASSERT_GT(std::count_if(oracle.begin(), oracle.end(), [](const OracleFrame& f) { return f.type == 'B'; }),
              40);
    for (const int threads : {1, 2, 4}) {
      for (const double fps : {0.9, 2.0, 7.0, 100.0}) {
        for (const bool motion : {true, false}) {
          ReadOptions read = options(fps, threads, {96, 80});
          read.motion = motion;
          const ReadResult result = read_all(scratch / "b.mp4", read);
          EXPECT_THAT(seconds_of(result.samples),
                      testing::Pointwise(NearTime(), shown_at(oracle, fps, 1 / result.info.average_fps)))
              << fps << " with " << threads;
          int b_frames = 0;
          for (const SampledFrame& sample : result.samples) {
            const auto same = std::find_if(oracle.begin(), oracle.end(), [&](const OracleFrame& f) {
              return std::abs(f.seconds - oracle.front().seconds - sample.seconds) < 1e-6;
            });
            ASSERT_NE(same, oracle.end());
            EXPECT_TRUE(sample.image->rgb == all[static_cast<std::size_t>(same - oracle.begin())].rgb)
                << "at " << sample.seconds << " with " << threads;
            b_frames += sample.type == FrameType::bidirectional ? 1 : 0;
          }
          EXPECT_GT(b_frames, 0);
          EXPECT_EQ(result.stats.damaged_packets, 0u);
          // Two of four B-frames are referred to by nobody.
          if (motion || fps > 50) {
            EXPECT_EQ(result.stats.decoded_frames, 120u);
          } else {
            EXPECT_LT(result.stats.decoded_frames, 90u);
          }
          if (!motion) {
            // Without pictures too, a frame that may be a sample is decoded.
            read.pixels = false;
            EXPECT_EQ(seconds_of(read_all(scratch / "b.mp4", read).samples), seconds_of(result.samples));
          }
        }
      }
    }
  }
}

TEST(Reader, PicturesHaveTheRightColoursAndFilter) {
  const Scratch scratch;
  struct Case {
    const char* name;
    const char* codec;
    AVPixelFormat format;
    AVColorSpace matrix;
    AVColorRange range;
    Size size;
  };
  const Case cases[] = {
      {"601.mp4", "libx264", AV_PIX_FMT_YUV420P, AVCOL_SPC_SMPTE170M, AVCOL_RANGE_MPEG, {192, 128}},
      {"709.mp4", "libx264", AV_PIX_FMT_YUV420P, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG, {192, 128}},
      {"none.mp4", "libx264", AV_PIX_FMT_YUV420P, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, {192, 128}},
      {"full.mp4", "libx264", AV_PIX_FMT_YUV420P, AVCOL_SPC_BT709, AVCOL_RANGE_JPEG, {192, 128}},
      {"full.webm", "libvpx-vp9", AV_PIX_FMT_YUV420P, AVCOL_SPC_BT709, AVCOL_RANGE_JPEG, {192, 128}},
      {"odd444.mkv", "libx264", AV_PIX_FMT_YUV444P, AVCOL_SPC_BT470BG, AVCOL_RANGE_MPEG, {191, 127}},
      {"jpeg.avi", "mjpeg", AV_PIX_FMT_YUVJ420P, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_JPEG, {192, 128}},
      {"rgb.mkv", "utvideo", AV_PIX_FMT_GBRP, AVCOL_SPC_RGB, AVCOL_RANGE_UNSPECIFIED, {192, 128}},
  };
  for (const Case& one : cases) {
    Clip clip;
    clip.codec = one.codec;
    clip.format = one.format;
    clip.matrix = one.matrix;
    clip.range = one.range;
    clip.size = one.size;
    clip.frames = 3;
    write_clip(scratch / one.name, clip);
    for (const Size size : {one.size, Size{448, 448}, Size{75, 41}, Size{28, 28}}) {
      std::vector<Image> wanted;
      oracle_decode(scratch / one.name,
                    [&](const AVFrame& frame) { wanted.push_back(oracle_rgb(frame, size)); });
      const ReadResult result = read_all(scratch / one.name, options(1e9, 1, size));
      ASSERT_EQ(result.samples.size(), wanted.size()) << one.name;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_LT(mean_difference(*result.samples[i].image, wanted[i]), 1.0) << one.name << ' ' << size.width;
      }
    }
  }
}

TEST(Reader, FramesWithoutTimestampsAreTimedByTheirRate) {
  const Scratch scratch;
  Clip clip;
  clip.b_frames = 2;
  write_clip(scratch / "raw.h264", clip);
  for (const int threads : {1, 2}) {
    const ReadResult result = read_all(scratch / "raw.h264", options(2, threads));
    EXPECT_THAT(seconds_of(result.samples), testing::Pointwise(NearTime(), {0.0, 0.48, 1.0, 1.48}))
        << threads;
    EXPECT_EQ(result.stats.decoded_frames, 50u);
  }
}

TEST(Reader, AClockThatIsSetBackGoesOn) {
  const Scratch scratch;
  Clip clip;
  clip.b_frames = 2;
  write_clip(scratch / "a.ts", clip);
  // As a recorder does that was restarted: the same times again.
  write_bytes(scratch / "twice.ts", read_bytes(scratch / "a.ts") + read_bytes(scratch / "a.ts"));
  const ReadResult result = read_all(scratch / "twice.ts", options(2));
  EXPECT_EQ(result.stats.decoded_frames, 100u);
  EXPECT_EQ(result.stats.timestamp_jumps, 1u);
  EXPECT_THAT(seconds_of(result.samples),
              testing::Pointwise(NearTime(), {0.0, 0.48, 1.0, 1.48, 2.0, 2.48, 3.0, 3.48}));
}

TEST(Reader, AGapInAFileIsKeptAndAWildTimestampIsNot) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 30;
  clip.time = [](int i) { return std::int64_t{i} * 40 + (i >= 15 ? 3'600'000 : 0); };
  write_clip(scratch / "gap.mkv", clip);
  const ReadResult gap = read_all(scratch / "gap.mkv", options(2));
  EXPECT_EQ(gap.samples.size(), 4u);
  EXPECT_NEAR(gap.samples.back().seconds, 3601.0, 0.1);
  EXPECT_EQ(gap.stats.timestamp_jumps, 1u);
}

TEST(Reader, TheSizeMayChangeInTheMiddle) {
  const Scratch scratch;
  Clip clip;
  clip.b_frames = 2;
  write_clip(scratch / "a.h264", clip);
  clip.size = {128, 160};
  write_clip(scratch / "b.h264", clip);
  write_bytes(scratch / "both.h264", read_bytes(scratch / "a.h264") + read_bytes(scratch / "b.h264"));
  for (const int threads : {1, 2, 4}) {
    std::vector<Size> asked;
    ReadOptions half = options(2, threads);
    half.size = [&](Size size) {
      if (asked.empty() || asked.back() != size) asked.push_back(size);
      return Size{size.width / 2, size.height / 2};
    };
    const ReadResult result = read_all(scratch / "both.h264", half);
    EXPECT_EQ(result.stats.decoded_frames, 100u);
    EXPECT_EQ(result.stats.size_changes, 1u);
    EXPECT_THAT(asked, testing::ElementsAre(Size{192, 128}, Size{128, 160}));
    ASSERT_EQ(result.samples.size(), 8u);
    EXPECT_EQ(result.samples[3].image->size, (Size{96, 64}));
    EXPECT_EQ(result.samples[4].image->size, (Size{64, 80}));
    for (const SampledFrame& sample : result.samples) {
      EXPECT_EQ(sample.motion->width, sample.source_size.width);
      for (const FrameMotion& frame : sample.motion->frames) {
        EXPECT_EQ((Size{frame.width, frame.height}),
                  frame.seconds < 1.99 ? (Size{192, 128}) : (Size{128, 160}));
      }
    }
  }
}

TEST(Reader, ARangeHoldsTheSameFramesAsTheWhole) {
  const Scratch scratch;
  for (const char* name : {"a.mp4", "a.mkv", "a.ts", "a.avi", "a.h264"}) {
    Clip clip;
    clip.frames = 250;
    clip.gop = 20;
    clip.b_frames = std::string(name) == "a.avi" ? 0 : 2;
    write_clip(scratch / name, clip);
    const std::vector<SampledFrame> whole = read_all(scratch / name, options(1e9)).samples;
    ASSERT_EQ(whole.size(), 250u) << name;
    ReadOptions part = options(1e9);
    part.from = 6.1;
    part.to = 7.5;
    const ReadResult result = read_all(scratch / name, part);
    ASSERT_EQ(result.samples.size(), 35u) << name;
    for (std::size_t i = 0; i < result.samples.size(); ++i) {
      EXPECT_NEAR(result.samples[i].seconds, whole[153 + i].seconds, 1e-6) << name;
      EXPECT_TRUE(result.samples[i].image->rgb == whole[153 + i].image->rgb) << name << ' ' << i;
    }
    // Nothing from before the range.
    EXPECT_GE(result.samples.front().motion->frames.front().seconds, 6.098);
  }
  ReadOptions part = options(2);
  part.from = 6.1;
  EXPECT_LT(read_all(scratch / "a.mp4", part).stats.decoded_frames, 130u)
      << "entering in the middle saves decoding";
  for (const double behind_the_end : {100.0, 1e300}) {
    part.from = behind_the_end;
    EXPECT_TRUE(read_all(scratch / "a.mp4", part).samples.empty());
  }
}

TEST(Reader, ASourceThatCannotBeReadTwiceIsReadOnceForARangeToo) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 100;
  write_clip(scratch / "a.ts", clip);
  const std::string bytes = read_bytes(scratch / "a.ts");
  std::signal(SIGPIPE, SIG_IGN);  // the reader may go first
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t written = write(ends[1], bytes.data() + done, bytes.size() - done);
      if (written <= 0) break;
      done += static_cast<std::size_t>(written);
    }
    close(ends[1]);
  });
  ReadOptions part = options(2);
  part.from = 2.5;
  ReadResult result;
  EXPECT_NO_THROW(result = read_all("/dev/fd/" + std::to_string(ends[0]), part));
  close(ends[0]);
  writer.join();
  EXPECT_THAT(seconds_of(result.samples),
              ::testing::ElementsAre(::testing::DoubleNear(2.5, 0.03), ::testing::DoubleNear(3, 0.03),
                                     ::testing::DoubleNear(3.5, 0.03)));
}

TEST(Reader, GoesWithoutPicturesWhenAskedTo) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  ReadOptions bare = options(2);
  bare.pixels = false;
  const ReadResult result = read_all(scratch / "a.mp4", bare);
  ASSERT_EQ(result.samples.size(), 4u);
  EXPECT_EQ(result.samples[1].image, nullptr);
  EXPECT_FALSE(result.samples[1].motion->frames.empty());
}

TEST(Reader, AStillPictureIsOneSample) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "mjpeg";
  clip.format = AV_PIX_FMT_YUVJ420P;
  clip.frames = 1;
  clip.container = "image2";
  clip.muxer_options = {{"update", "1"}};
  write_clip(scratch / "still.jpg", clip);
  EXPECT_EQ(read_all(scratch / "still.jpg", options(2)).samples.size(), 1u);
}

TEST(Reader, RefusesOptionsThatMakeNoSense) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  EXPECT_THROW(VideoReader::open(scratch / "a.mp4", options(0)), std::invalid_argument);
  EXPECT_THROW(VideoReader::open(scratch / "a.mp4", options(2, 0)), std::invalid_argument);
  EXPECT_THROW(read_all(scratch / "a.mp4", options(2, 1, {5, 0})), std::invalid_argument);
}

TEST(Reader, ReadsFilesWhateverTheyAreCalled) {
  const Scratch scratch;
  for (const char* name : {"12:30 front door.mp4", "rtsp:x.mp4", "100%d.mp4", "-i.mp4"}) {
    write_clip(scratch / "a.mp4", {});
    std::filesystem::rename(scratch / "a.mp4", scratch / name);
    EXPECT_EQ(read_all(scratch / name, options(2)).samples.size(), 4u) << name;
  }
}

}  // namespace
}  // namespace vigil::media
