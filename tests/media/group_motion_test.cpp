// Vectors over the patches of a scaled picture.
#include "media/group_motion.h"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/clip.h"

namespace vigil::media {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kNew = std::numeric_limits<float>::infinity();

/// Blocks of 16 pixels without motion over a whole frame.
FrameMotion still(int width, int height) {
  FrameMotion frame;
  frame.type = FrameType::predicted;
  frame.width = width;
  frame.height = height;
  for (int y = 0; y < height; y += 16)
    for (int x = 0; x < width; x += 16)
      frame.vectors.push_back(
          {static_cast<std::int16_t>(x), static_cast<std::int16_t>(y), 16, 16, -1, 0, 0, 4});
  return frame;
}

MotionVector& block_at(FrameMotion& frame, int x, int y) {
  for (MotionVector& v : frame.vectors)
    if (v.x == x && v.y == y) return v;
  throw std::logic_error("no such block");
}

TEST(GroupMotionTest, ABlockMovesEachPatchThatItTouches) {
  // Blocks of 16 pixels, patches of 32 x 24: the block at (16, 16) lies in rows 0 and 1 of column 0.
  FrameMotion frame = still(64, 48);
  block_at(frame, 16, 16).dx = 3;
  block_at(frame, 16, 16).dy = -4;
  EXPECT_THAT(group_motion(frame, 2, 2), ElementsAre(1.25F, 0, 1.25F, 0)) << "5 quarters of a pixel";
  block_at(frame, 0, 0).dx = 100;
  EXPECT_THAT(group_motion(frame, 2, 2), ElementsAre(25, 0, 1.25F, 0)) << "the longest one counts";
}

TEST(GroupMotionTest, WhatHasNoVectorIsNew) {
  FrameMotion frame = still(64, 64);
  std::erase_if(frame.vectors, [](const MotionVector& v) { return v.x == 48 && v.y == 0; });
  EXPECT_THAT(group_motion(frame, 2, 2), ElementsAre(0, kNew, 0, 0)) << "a quarter of the patch";
  EXPECT_THAT(group_motion(frame, 1, 1), ElementsAre(kNew)) << "a sixteenth of it, but a macroblock";
  for (const auto& [x, y] : {std::pair{48, 0}, {56, 0}, {48, 8}})
    frame.vectors.push_back({static_cast<std::int16_t>(x), static_cast<std::int16_t>(y), 8, 8, -1, 0, 0, 4});
  EXPECT_THAT(group_motion(frame, 1, 1), ElementsAre(0)) << "a quarter of a macroblock is no new thing";
  frame.vectors.clear();
  EXPECT_THAT(group_motion(frame, 4, 4), Each(kNew));
}

TEST(GroupMotionTest, CellsOfAnySizeAreNewWithoutVectors) {
  FrameMotion large;
  large.type = FrameType::predicted;
  large.width = 3840;
  large.height = 2160;
  EXPECT_THAT(group_motion(large, 2, 2), Each(kNew)) << "130,000 blocks a cell";
  FrameMotion small = large;
  small.width = 64;
  small.height = 36;
  EXPECT_THAT(group_motion(small, 64, 64), Each(kNew)) << "cells smaller than a block";
}

TEST(GroupMotionTest, BothDirectionsOfABlockCoverIt) {
  FrameMotion frame = still(32, 32);
  frame.type = FrameType::bidirectional;
  MotionVector forward = frame.vectors[0];
  forward.reference = 1;
  forward.dx = 8;
  frame.vectors.push_back(forward);
  EXPECT_THAT(group_motion(frame, 2, 2), ElementsAre(2, 0, 0, 0));
}

TEST(GroupMotionTest, BlocksBeyondThePictureAreCutOff) {
  // 1080 lines are 67.5 blocks.
  FrameMotion frame = still(1920, 1080);
  frame.vectors.push_back({-16, 0, 16, 16, -1, 400, 0, 4});
  frame.vectors.push_back({1920, 1088, 16, 16, -1, 400, 0, 4});
  const std::vector<float> motion = group_motion(frame, 32, 32);
  ASSERT_EQ(motion.size(), 1024U);
  EXPECT_THAT(motion, Each(0));
}

TEST(GroupMotionTest, NothingIsKnownOfIntraFramesAndOfFramesWithoutASize) {
  FrameMotion intra = still(32, 32);
  intra.intra = true;
  EXPECT_THAT(group_motion(intra, 2, 2), IsEmpty());
  EXPECT_THAT(group_motion({}, 2, 2), IsEmpty());
  EXPECT_THAT(group_motion(still(32, 32), 0, 2), IsEmpty());
}

/// Pixel by pixel, for blocks of any size and place.
TEST(GroupMotionTest, IsWhatEveryPixelSays) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 60; ++turn) {
    const int width = 16 + static_cast<int>(random() % 200);
    const int height = 16 + static_cast<int>(random() % 120);
    const int rows = 1 + static_cast<int>(random() % 5);
    const int columns = 1 + static_cast<int>(random() % 7);
    FrameMotion frame = still(width, height);
    for (int i = 0; i < 12; ++i)
      frame.vectors.push_back({static_cast<std::int16_t>(static_cast<int>(random() % 220) - 10),
                               static_cast<std::int16_t>(static_cast<int>(random() % 130) - 10),
                               static_cast<std::uint8_t>(4 << random() % 3),
                               static_cast<std::uint8_t>(4 << random() % 3), -1,
                               static_cast<int>(random() % 64), 0, 4});
    std::vector<float> expected(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), 0);
    for (const MotionVector& v : frame.vectors)
      for (int y = std::max<int>(0, v.y); y < std::min(height, v.y + v.height); ++y)
        for (int x = std::max<int>(0, v.x); x < std::min(width, v.x + v.width); ++x) {
          float& at = expected[static_cast<std::size_t>(y * rows / height * columns + x * columns / width)];
          at = std::max(at, v.dx_pixels());
        }
    EXPECT_EQ(group_motion(frame, rows, columns), expected) << width << "x" << height;
  }
}

/// What FFmpeg's decoder says of a clip that x264 made: what appears is coded without a reference.
TEST(GroupMotionTest, OfARealClipEveryInterFrameHasANumberAPatch) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "libx264";
  clip.frames = 30;
  const std::string path = scratch / "clip.mp4";
  write_clip(path, clip);
  ReadOptions options;
  options.pixels = false;
  options.fps = 1e9;
  const ReadResult result = read_all(path, options);
  int moving = 0;
  for (const SampledFrame& sample : result.samples)
    for (const FrameMotion& frame : sample.motion->frames) {
      const std::vector<float> motion = group_motion(frame, 8, 8);
      ASSERT_EQ(motion.size(), frame.intra ? 0U : 64U);
      for (const float pixels : motion) {
        ASSERT_GE(pixels, 0);
        moving += pixels > 0.25F && std::isfinite(pixels);
      }
    }
  EXPECT_GT(moving, 100) << "the clip moves";
}

}  // namespace
}  // namespace vigil::media
