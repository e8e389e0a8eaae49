#include "engine/prune/pruning_policy.h"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/prune/scene.h"

namespace vigil::prune {
namespace {

using testing::Canvas;
using testing::choose;
using testing::mask;

TEST(PruningPolicyTest, NoneKeepsAll) {
  const auto policy = make_pruning("none", {});
  const Canvas a(2, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(choose(*policy, i, {&a, &a}), base::GridMask::all(2, 3));
}

TEST(PruningPolicyTest, EveryPolicyRefusesPicturesThatHaveNoGroups) {
  const Canvas a(2, 3), b(3, 2);
  Canvas odd(2, 3);
  odd.width = 70;
  for (const std::string_view name : kPruningPolicies) {
    const auto policy = make_pruning(name, {});
    EXPECT_THROW(policy->choose(0, {}), std::invalid_argument) << name;
    EXPECT_THROW(choose(*policy, 0, {&a, &b}), std::invalid_argument) << name;
    EXPECT_THROW(choose(*policy, 0, {&odd}), std::invalid_argument) << name;
    EXPECT_TRUE(choose(*policy, 0, {&a}).has_all()) << name << ": a patch of one frame, after those";
  }
}

TEST(PruningPolicyTest, WrongNamesAndOptionsAreRefusedInALine) {
  try {
    make_pruning("motion", {});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "no pruning is called 'motion' (known: none, codecsight, reference, dtd, scene, changes)");
  }
  for (const PruningOptions& wrong : {PruningOptions{.grid = {0, 2}}, PruningOptions{.anchor_phase = 1},
                                      PruningOptions{.anchor_phase = -0.1}})
    EXPECT_THROW(make_pruning("none", wrong), std::invalid_argument);
  EXPECT_THROW(make_pruning("codecsight", {.motion_threshold = -1}), std::invalid_argument);
  EXPECT_THROW(make_pruning("codecsight", {.residual_weight = -1}), std::invalid_argument);
  for (const char* name : {"reference", "dtd"})
    EXPECT_THROW(make_pruning(name, {.luma_threshold = -1}), std::invalid_argument);
  for (const char* name : {"reference", "dtd", "scene", "changes"})
    EXPECT_THROW(make_pruning(name, {.anchor_seconds = 0}), std::invalid_argument);
}

TEST(PruningPolicyTest, AnchorsOfAFleetAreSpread) {
  EXPECT_EQ(anchor_phase("gate-7"), anchor_phase("gate-7"));
  std::array<int, 10> tenths{};
  for (int i = 0; i < 1000; ++i) {
    const double phase = anchor_phase("gate-" + std::to_string(i));
    ASSERT_GE(phase, 0);
    ASSERT_LT(phase, 1);
    ++tenths[static_cast<std::size_t>(10 * phase)];
  }
  // 100 each, four standard deviations of a fair draw around it.
  EXPECT_GT(*std::min_element(tenths.begin(), tenths.end()), 60);
  EXPECT_LT(*std::max_element(tenths.begin(), tenths.end()), 140);
}

TEST(DifferentialDropTest, ComparesWithTheFrameBefore) {
  const auto policy = make_pruning("dtd", {.anchor_seconds = 1e9});
  EXPECT_FALSE(policy->wants_motion());
  const Canvas empty(2, 2);
  Canvas bag(2, 2);
  bag.box(28, 28, 28, 28, 140);
  EXPECT_TRUE(choose(*policy, 0, {&empty, &empty}).has_all());
  EXPECT_EQ(choose(*policy, 1, {&empty, &bag}), mask(2, 2, {3}));
  EXPECT_EQ(choose(*policy, 2, {&bag, &bag}), mask(2, 2, {}));
  EXPECT_EQ(choose(*policy, 3, {&empty, &empty}), mask(2, 2, {3}));
  // What creeps is never seen.
  for (int i = 1; i < 60; ++i) {
    Canvas now(2, 2);
    now.light(i);
    EXPECT_EQ(choose(*policy, 3 + i, {&now, &now}).count(), 0);
  }
}

TEST(DifferentialDropTest, WhatWasLostAndAnchorsComeAgain) {
  const auto policy = make_pruning("dtd", {.anchor_seconds = 10});
  const Canvas empty(2, 2);
  choose(*policy, 0, {&empty, &empty});
  policy->lost(mask(2, 2, {2}));
  EXPECT_EQ(choose(*policy, 1, {&empty, &empty}), mask(2, 2, {2}));
  EXPECT_EQ(choose(*policy, 2, {&empty, &empty}), mask(2, 2, {}));
  EXPECT_TRUE(choose(*policy, 10, {&empty, &empty}).has_all());
}

}  // namespace
}  // namespace vigil::prune
