// How far blocks are from their predictions: of frames that are made by hand, and over patches.
#include "media/residual.h"

extern "C" {
#include <libavutil/motion_vector.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/group_motion.h"

namespace vigil::media {
namespace {

using testing::IsEmpty;

constexpr float kUnknown = std::numeric_limits<float>::infinity();

Frame made(AVPixelFormat format, int width, int height) {
  Frame frame = make_frame();
  frame->format = format;
  frame->width = width;
  frame->height = height;
  if (av_frame_get_buffer(frame.get(), 0) < 0) throw std::runtime_error("no frame");
  return frame;
}

Frame grey(int width, int height, const std::function<int(int x, int y)>& value) {
  Frame frame = made(AV_PIX_FMT_GRAY8, width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      frame->data[0][y * frame->linesize[0] + x] = static_cast<std::uint8_t>(value(x, y));
  return frame;
}

Frame flat(int value, int size = 16) {
  return grey(size, size, [value](int, int) { return value; });
}

class ResidualMeterTest : public ::testing::Test {
 protected:
  void push(const Frame& frame, FrameType type, std::vector<MotionVector> vectors = {}) {
    FrameMotion motion;
    motion.type = type;
    motion.intra = type == FrameType::intra;
    motion.width = frame->width;
    motion.height = frame->height;
    motion.seconds = seconds_++;
    motion.vectors = std::move(vectors);
    meter_.push(*frame, std::move(motion), references_);
  }
  /// Of the next frame's only block.
  float next() {
    const std::optional<FrameMotion> motion = meter_.pop();
    if (!motion || motion->residual.size() != 1) {
      ADD_FAILURE() << "no frame with a block";
      return -1;
    }
    EXPECT_TRUE(motion->measured);
    return motion->residual.front().difference;
  }
  void skip() { ASSERT_TRUE(meter_.pop().has_value()); }

  static constexpr MotionVector kBack{0, 0, 16, 16, -1, 0, 0, 4};
  static constexpr MotionVector kAhead{0, 0, 16, 16, 1, 0, 0, 4};

  ResidualMeter meter_;
  int references_ = 1;
  double seconds_ = 0;
};

TEST_F(ResidualMeterTest, IsTheSumOverTheBlocksPixels) {
  push(flat(100), FrameType::intra);
  const std::optional<FrameMotion> intra = meter_.pop();
  ASSERT_TRUE(intra.has_value());
  EXPECT_FALSE(intra->measured);
  EXPECT_THAT(intra->residual, IsEmpty());
  push(flat(103), FrameType::predicted, {kBack});
  EXPECT_EQ(next(), 3 * 256);
  push(flat(98), FrameType::predicted, {{8, 8, 16, 16, -1, 0, 0, 4}});
  EXPECT_EQ(next(), 5 * 64) << "of the frame before, and only inside of the picture";
  push(flat(98), FrameType::predicted, {{16, 0, 16, 16, -1, 0, 0, 4}, {-16, 0, 16, 16, -1, 0, 0, 4}});
  const std::optional<FrameMotion> outside = meter_.pop();
  ASSERT_TRUE(outside.has_value());
  EXPECT_THAT(outside->residual, IsEmpty());
}

TEST_F(ResidualMeterTest, FollowsVectorsToPartsOfAPixelAndBeyondTheEdges) {
  const auto ramp = [](int x, int y) { return 20 + 8 * x + 2 * y; };
  push(grey(16, 16, ramp), FrameType::intra);
  skip();
  // 2.25 pixels to the right and half a pixel up: 18 more, 1 less.
  push(grey(16, 16, [&](int x, int y) { return ramp(x, y) + 17; }), FrameType::predicted,
       {{4, 4, 8, 8, -1, 9, -2, 4}});
  EXPECT_EQ(next(), 0);
  push(grey(16, 16, ramp), FrameType::intra);
  skip();
  // Far beyond the left edge there is the edge.
  push(grey(16, 16, [&](int, int y) { return ramp(0, y); }), FrameType::predicted,
       {{0, 0, 16, 16, -1, std::numeric_limits<std::int32_t>::min(), 0, 4}});
  EXPECT_EQ(next(), 0);
  push(grey(16, 16, ramp), FrameType::intra);
  skip();
  push(grey(16, 16, [&](int x, int) { return ramp(x, 15); }), FrameType::predicted,
       {{0, 0, 16, 16, -1, 0, std::numeric_limits<std::int32_t>::max(), 1}});
  EXPECT_EQ(next(), 0);
}

TEST_F(ResidualMeterTest, ABFrameWaitsForTheFrameAfterIt) {
  push(flat(100), FrameType::intra);
  skip();
  push(flat(150), FrameType::bidirectional, {kBack, kAhead});
  push(flat(200), FrameType::bidirectional, {kAhead});
  push(flat(100), FrameType::bidirectional, {kBack, kAhead});
  push(flat(190), FrameType::bidirectional, {kBack});
  EXPECT_EQ(meter_.pop(), std::nullopt);
  push(flat(200), FrameType::predicted, {kBack});
  EXPECT_EQ(next(), 0) << "the mean of both";
  EXPECT_EQ(next(), 0) << "the one after it";
  EXPECT_EQ(next(), 0) << "the one before it: the other vector was none";
  EXPECT_EQ(next(), 90 * 256) << "a B-frame is no reference";
  EXPECT_EQ(next(), 100 * 256) << "nor for the frame after it";
  push(flat(200), FrameType::bidirectional, {kAhead});
  push(flat(200), FrameType::bidirectional, {kBack});
  meter_.finish();
  EXPECT_EQ(next(), kUnknown) << "its reference never came";
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(meter_.pop(), std::nullopt);
}

TEST_F(ResidualMeterTest, WithoutEndABFrameDoesNotWaitForEver) {
  push(flat(100), FrameType::intra);
  skip();
  for (int i = 0; i < 16; ++i) push(flat(101), FrameType::bidirectional, {kBack});
  for (int i = 0; i < 16; ++i) EXPECT_EQ(next(), 256);
}

TEST_F(ResidualMeterTest, OfSeveralReferencesTheBestOneIsMeant) {
  for (const int references : {1, 2, 3, 16}) {
    references_ = references;
    for (const int value : {10, 60, 110, 160}) {
      push(flat(value), FrameType::intra);
      skip();
    }
    push(flat(62), FrameType::predicted, {kBack});
    EXPECT_EQ(next(), (references == 1 ? 98 : references == 2 ? 48 : 2) * 256) << references;
  }
}

TEST_F(ResidualMeterTest, BFramesAreReferencesWhereAStreamHasRoomForThem) {
  for (const int references : {2, 4}) {
    meter_ = ResidualMeter();
    references_ = references;
    push(flat(0), FrameType::intra);
    skip();
    push(flat(50), FrameType::bidirectional, {kBack});
    push(flat(51), FrameType::bidirectional, {kBack});
    push(flat(50), FrameType::bidirectional, {kAhead});
    push(flat(51), FrameType::bidirectional, {kAhead});
    push(flat(100), FrameType::predicted, {kBack});
    const float one = references == 2 ? 51 : 1;
    EXPECT_EQ(next(), 50 * 256);
    EXPECT_EQ(next(), one * 256) << references;
    EXPECT_EQ(next(), (references == 2 ? 50 : 1) * 256) << references;
    EXPECT_EQ(next(), 49 * 256);
    EXPECT_EQ(next(), (references == 2 ? 100 : 49) * 256) << references;
  }
}

TEST_F(ResidualMeterTest, WithoutTheFrameItRefersToNothingIsKnown) {
  push(flat(100), FrameType::predicted, {kBack});
  EXPECT_EQ(next(), kUnknown) << "a stream that begins in the middle";
  push(flat(100, 32), FrameType::predicted, {kBack});
  EXPECT_EQ(next(), kUnknown) << "another size";
  push(flat(101, 32), FrameType::predicted, {kBack});
  EXPECT_EQ(next(), 256);
  push(flat(101, 32), FrameType::predicted, {kAhead});
  EXPECT_EQ(next(), kUnknown) << "a P-frame that refers to what comes";
}

TEST_F(ResidualMeterTest, FramesWithoutLumaAreNotMeasured) {
  push(made(AV_PIX_FMT_MONOBLACK, 16, 16), FrameType::predicted, {kBack});
  const std::optional<FrameMotion> motion = meter_.pop();
  ASSERT_TRUE(motion.has_value());
  EXPECT_FALSE(motion->measured);
  EXPECT_THAT(group_residual(*motion, 2, 2), IsEmpty());
}

TEST(LumaTest, IsReadInEightBitsFromAnyFormatThatHasIt) {
  for (const AVPixelFormat format :
       {AV_PIX_FMT_YUV420P, AV_PIX_FMT_NV12, AV_PIX_FMT_YUV420P10LE, AV_PIX_FMT_YUV444P12LE,
        AV_PIX_FMT_P010LE, AV_PIX_FMT_GRAY16LE, AV_PIX_FMT_GBRP, AV_PIX_FMT_RGB24, AV_PIX_FMT_YUYV422}) {
    const Frame frame = made(format, 19, 7);
    const AVPixFmtDescriptor& about = *av_pix_fmt_desc_get(format);
    const AVComponentDescriptor& component = about.comp[(about.flags & AV_PIX_FMT_FLAG_RGB) != 0 ? 1 : 0];
    // FFmpeg's writing of samples adds bits to what is there.
    for (const AVBufferRef* buffer : frame->buf)
      if (buffer != nullptr) std::fill_n(buffer->data, buffer->size, std::uint8_t{0});
    std::vector<std::uint16_t> line(19);
    for (int y = 0; y < 7; ++y) {
      for (int x = 0; x < 19; ++x)
        line[static_cast<std::size_t>(x)] =
            static_cast<std::uint16_t>(((13 * x + 31 * y) % 256) << (component.depth - 8));
      av_write_image_line2(line.data(), frame->data, frame->linesize, &about, 0, y,
                           (about.flags & AV_PIX_FMT_FLAG_RGB) != 0 ? 1 : 0, 19, sizeof(std::uint16_t));
    }
    const std::optional<Luma> luma = Luma::of(*frame);
    ASSERT_TRUE(luma.has_value()) << about.name;
    for (int y = 0; y < 7; ++y)
      for (int x = 0; x < 19; ++x) ASSERT_EQ(luma->row(y)[x], (13 * x + 31 * y) % 256) << about.name;
  }
  for (const AVPixelFormat format : {AV_PIX_FMT_MONOWHITE, AV_PIX_FMT_PAL8, AV_PIX_FMT_YUV420P10BE})
    EXPECT_FALSE(Luma::of(*made(format, 16, 16)).has_value()) << av_get_pix_fmt_name(format);
}

TEST(GroupResidualTest, ABlockCountsInEachPatchAsMuchAsLiesThere) {
  FrameMotion frame;
  frame.type = FrameType::predicted;
  frame.measured = true;
  frame.width = 40;
  frame.height = 24;
  // Patches of 20 x 24: three quarters of the second block lie in the first one.
  frame.residual = {{0, 0, 8, 8, 64}, {8, 0, 16, 16, 400}, {32, 16, 16, 16, 64}};
  EXPECT_THAT(group_residual(frame, 1, 2), testing::ElementsAre(364, 164));
  frame.residual[2].difference = kUnknown;
  EXPECT_THAT(group_residual(frame, 1, 2), testing::ElementsAre(364, kUnknown));
  frame.residual.clear();
  EXPECT_THAT(group_residual(frame, 1, 2), testing::ElementsAre(0, 0))
      << "blocks without vectors are motion's";
  frame.measured = false;
  EXPECT_THAT(group_residual(frame, 1, 2), IsEmpty());
  frame.measured = true;
  EXPECT_THAT(group_residual(frame, 0, 2), IsEmpty());
  frame.width = 0;
  EXPECT_THAT(group_residual(frame, 1, 2), IsEmpty());
}

// However the frame is scaled, cropped at no edge, nothing is lost and nothing counts twice.
TEST(GroupResidualTest, AllPatchesTogetherHaveWhatAllBlocksHave) {
  FrameMotion frame;
  frame.type = FrameType::predicted;
  frame.measured = true;
  frame.width = 203;
  frame.height = 117;
  double sum = 0;
  for (int y = 0; y < 117; y += 16)
    for (int x = 0; x < 203; x += 8) {
      const auto value = static_cast<float>((7 * x + 13 * y) % 300);
      frame.residual.push_back({static_cast<std::int16_t>(x), static_cast<std::int16_t>(y), 8, 16, value});
      sum += value;
    }
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 3}, {16, 16}, {32, 32}, {100, 203}, {400, 300}}) {
    const std::vector<float> residual = group_residual(frame, rows, columns);
    ASSERT_EQ(residual.size(), static_cast<std::size_t>(rows * columns));
    EXPECT_NEAR(std::accumulate(residual.begin(), residual.end(), 0.0), sum, 1e-4 * sum)
        << rows << "x" << columns;
  }
}

}  // namespace
}  // namespace vigil::media
