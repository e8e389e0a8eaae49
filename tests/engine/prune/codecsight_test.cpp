// Equations 1 to 4 of CodecSight, case by case, and beside a second writing of them.
#include "engine/prune/codecsight.h"

#include <deque>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/engine/prune/scene.h"

namespace vigil::prune {
namespace {

using testing::Canvas;
using testing::mask;

/// 2 x 3 groups, 4 x 6 patches.
class CodecSightTest : public ::testing::Test {
 protected:
  CodecFrame inter(const std::vector<std::pair<int, float>>& moving = {}) {
    std::vector<float>& motion = kept_.emplace_back(24, 0.0F);
    for (const auto& [patch, pixels] : moving) motion[static_cast<std::size_t>(patch)] = pixels;
    return {.intra = false, .motion = motion};
  }
  static CodecFrame intra() { return {.intra = true, .motion = {}, .residual = {}}; }

  base::GridMask choose(PruningPolicy& policy, const std::vector<std::vector<CodecFrame>>& samples) const {
    std::vector<SampledPicture> pictures;
    for (const std::vector<CodecFrame>& frames : samples) pictures.push_back({picture_.view(), frames});
    return policy.choose(0, pictures).encoded;
  }

  Canvas picture_{2, 3};
  std::deque<std::vector<float>> kept_;
};

TEST_F(CodecSightTest, IFramesAreWholeAndWhatMovesAfterThemAddsUp) {
  CodecSight policy({});
  EXPECT_TRUE(policy.wants_motion());
  EXPECT_FALSE(policy.wants_residual());
  EXPECT_TRUE(choose(policy, {{intra()}}).has_all());
  EXPECT_EQ(choose(policy, {{inter()}}), mask(2, 3, {}));
  // Patch 3 is in row 0, column 3: group 1. Patch 23 is the last one: group 5.
  EXPECT_EQ(choose(policy, {{inter({{3, 1}})}}), mask(2, 3, {1}));
  EXPECT_EQ(choose(policy, {{inter({{23, 1}})}}), mask(2, 3, {1, 5}));
  EXPECT_EQ(choose(policy, {{inter()}}), mask(2, 3, {1, 5})) << "it stays active until the next I-frame";
  EXPECT_TRUE(choose(policy, {{intra()}}).has_all());
  EXPECT_EQ(choose(policy, {{inter()}}), mask(2, 3, {}));
}

TEST_F(CodecSightTest, FramesThatAreNotSampledCount) {
  CodecSight policy({});
  choose(policy, {{intra()}});
  EXPECT_EQ(choose(policy, {{inter({{0, 1}}), inter(), inter()}}), mask(2, 3, {0}));
  // The first sample after an I-frame stands for it; what moved before it counts no more.
  EXPECT_TRUE(choose(policy, {{inter({{5, 1}}), intra(), inter({{12, 1}})}}).has_all());
  EXPECT_EQ(choose(policy, {{inter()}}), mask(2, 3, {3}));
}

TEST_F(CodecSightTest, ATokenOfTwoFramesIsTheUnionOfBoth) {
  CodecSight policy({});
  choose(policy, {{intra()}});
  EXPECT_EQ(choose(policy, {{inter({{0, 1}})}, {inter({{4, 1}})}}), mask(2, 3, {0, 2}));
  EXPECT_TRUE(choose(policy, {{inter()}, {intra()}}).has_all());
  EXPECT_TRUE(choose(policy, {{intra(), inter()}, {inter()}}).has_all());
}

TEST_F(CodecSightTest, AQuarterPixelIsNotYetMotionAndABlockWithoutReferenceIs) {
  CodecSight policy({});
  choose(policy, {{intra()}});
  EXPECT_EQ(choose(policy, {{inter({{0, 0.25F}})}}), mask(2, 3, {}));
  EXPECT_EQ(choose(policy, {{inter({{0, 0.26F}, {5, std::numeric_limits<float>::infinity()}})}}),
            mask(2, 3, {0, 2}));
}

TEST_F(CodecSightTest, TheResidualHasItsWeight) {
  CodecSight policy({.residual_weight = 0.01F});
  std::vector<float> residual(24, 20);
  residual[7] = 30;
  choose(policy, {{intra()}});
  CodecFrame frame = inter({{0, 0.06F}});
  frame.residual = residual;
  // 0.06 + 0.2 and 0.3 exceed 0.25; 0.2 does not. Patch 7 is in row 1, column 1: group 0.
  EXPECT_EQ(choose(policy, {{frame}}), mask(2, 3, {0}));
  residual[17] = 30;
  CodecFrame later = inter();
  later.residual = residual;
  EXPECT_EQ(choose(policy, {{later}}), mask(2, 3, {0, 5}));
  EXPECT_TRUE(policy.wants_residual());
  residual.pop_back();
  CodecFrame short_one = inter();
  short_one.residual = residual;
  EXPECT_THROW(choose(policy, {{short_one}}), std::invalid_argument);
  EXPECT_TRUE(choose(policy, {{inter()}}).has_all()) << "nobody measured it";
}

TEST_F(CodecSightTest, WhereNothingIsKnownAllIsKept) {
  CodecSight midway({});
  EXPECT_TRUE(choose(midway, {{inter()}}).has_all()) << "of a stream that did not begin with an I-frame";
  CodecSight silent({});
  choose(silent, {{intra()}});
  EXPECT_TRUE(choose(silent, {{CodecFrame{}}}).has_all()) << "no vectors";
  CodecSight frameless({});
  EXPECT_TRUE(choose(frameless, {{}}).has_all()) << "no frames told";
  const std::vector<float> short_motion(23, 0);
  EXPECT_THROW(choose(silent, {{{.motion = short_motion}}}), std::invalid_argument);
}

TEST_F(CodecSightTest, WhatWasLostComesAgain) {
  CodecSight policy({});
  choose(policy, {{intra()}});
  policy.lost(mask(2, 3, {4}));
  EXPECT_EQ(choose(policy, {{inter({{0, 1}})}}), mask(2, 3, {0, 4}));
  EXPECT_EQ(choose(policy, {{inter()}}), mask(2, 3, {0}));
}

// The definition once more, from what every frame since the last I-frame said.
TEST_F(CodecSightTest, IsTheUnionOfAllFramesSinceTheLastIFrame) {
  std::mt19937 random(3);
  CodecSight policy({});
  std::vector<std::vector<float>> since;
  bool known = false;
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<std::vector<CodecFrame>> samples(2);
    std::set<int> expected;
    bool whole = false;
    for (std::vector<CodecFrame>& frames : samples) {
      whole = whole || !known;
      const auto count = 1 + random() % 4;
      for (unsigned i = 0; i < count; ++i) {
        if (random() % 6 == 0) {
          frames.push_back(intra());
          since.clear();
          known = whole = true;
        } else {
          frames.push_back(
              inter({{static_cast<int>(random() % 24), static_cast<float>(random() % 100) / 100}}));
          since.push_back(kept_.back());
        }
      }
      for (const std::vector<float>& motion : since)
        for (int row = 0; row < 4; ++row)
          for (int column = 0; column < 6; ++column)
            if (motion[static_cast<std::size_t>(6 * row + column)] > 0.25F)
              expected.insert(row / 2 * 3 + column / 2);
    }
    const base::GridMask kept = choose(policy, samples);
    EXPECT_EQ(kept, whole ? base::GridMask::all(2, 3)
                          : mask(2, 3, std::vector<int>(expected.begin(), expected.end())));
  }
}

}  // namespace
}  // namespace vigil::prune
