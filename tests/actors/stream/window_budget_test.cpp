#include "actors/stream/window_budget.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using Level = WindowBudget::Level;
using ::testing::HasSubstr;
using ::testing::Not;

/// Windows of ten patches of a hundred groups, and room for half of them.
WindowBudget::Load load(std::int64_t tokens, std::int64_t forgotten = 0, bool can_prune = true) {
  return {.tokens = tokens,
          .budget = 500,
          .picture = 100,
          .patches = 10,
          .forgotten = forgotten,
          .can_prune = can_prune};
}

TEST(WindowBudget, PruningGetsHarderWhereAWholePictureHasNoRoom) {
  WindowBudget budget;
  WindowBudget::Verdict verdict = budget.hear(load(400));
  EXPECT_EQ(verdict.share, 1);
  EXPECT_EQ(verdict.entered, std::nullopt);
  verdict = budget.hear(load(401));
  EXPECT_EQ(verdict.entered, Level::pruned);
  EXPECT_EQ(verdict.left, Level::within);
  EXPECT_DOUBLE_EQ(verdict.share, 300.0 / 800) << "eight patches share what two whole ones leave";
  for (int i = 0; i < 9; ++i) {
    verdict = budget.hear(load(300));
    EXPECT_EQ(verdict.entered, std::nullopt) << i;
    EXPECT_DOUBLE_EQ(verdict.share, 300.0 / 800) << "not with every patch another";
  }
  verdict = budget.hear(load(300));
  EXPECT_EQ(verdict.entered, Level::within);
  EXPECT_EQ(verdict.left, Level::pruned);
  EXPECT_EQ(verdict.share, 1);
}

TEST(WindowBudget, WhatForgetsIsSaidAndEndsWithAWindowWithoutIt) {
  for (const bool can_prune : {true, false}) {
    WindowBudget budget;
    WindowBudget::Verdict verdict = budget.hear(load(350, 1, can_prune));
    EXPECT_EQ(verdict.entered, Level::shortened);
    EXPECT_EQ(verdict.share < 1, can_prune);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(budget.hear(load(350, 0, can_prune)).entered, std::nullopt);
    EXPECT_EQ(budget.hear(load(350, 0, can_prune)).entered, Level::within);
    EXPECT_EQ(budget.hear(load(350, 0, can_prune)).entered, std::nullopt);
  }
}

TEST(WindowBudget, AsLongAsPruningIsCalledForWhatForgotIsNotOver) {
  WindowBudget budget;
  budget.hear(load(450, 50));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(budget.hear(load(450)).entered, std::nullopt);
    EXPECT_EQ(budget.level(), Level::shortened);
  }
}

TEST(WindowBudget, WithoutOneThereIsNothingToSay) {
  WindowBudget budget;
  WindowBudget::Load none = load(1 << 20, 0);
  none.budget.reset();
  EXPECT_EQ(budget.hear(none).entered, std::nullopt);
  EXPECT_EQ(budget.hear(none).share, 1);
  budget.hear(load(450));
  EXPECT_EQ(budget.hear(none).entered, Level::within) << "at once when it is taken away";
}

TEST(WindowBudget, WhatWindowsOfWholePicturesHaveRoomForCallsForNothing) {
  WindowBudget budget;
  WindowBudget::Load roomy = load(1000);
  roomy.budget = 1000;
  EXPECT_EQ(budget.hear(roomy).entered, std::nullopt);
}

TEST(WindowBudget, AShareIsAlwaysOne) {
  std::mt19937 random(20261125);
  const auto below = [&](std::uint32_t count) { return static_cast<std::int64_t>(random() % count); };
  for (int i = 0; i < 100'000; ++i) {
    WindowBudget::Load any;
    any.tokens = below(5000);
    if (below(4) != 0) any.budget = below(3000);
    any.picture = below(200);
    any.patches = below(20);
    any.forgotten = below(2);
    any.can_prune = below(2) == 0;
    const double share = WindowBudget::share_of(any);
    ASSERT_GE(share, WindowBudget::kLeastShare);
    ASSERT_LE(share, 1);
    const WindowBudget::Verdict verdict = WindowBudget().hear(any);
    ASSERT_TRUE(std::isfinite(verdict.share));
    if (!any.can_prune) {
      ASSERT_EQ(verdict.share, 1);
    }
    // A window of two whole pictures and the share of the others has room, but for the least share.
    if (!any.budget || any.patches <= 2 || any.picture == 0) continue;
    if (share == WindowBudget::kLeastShare || share == 1) continue;
    ASSERT_LE(static_cast<double>(any.picture) * (2 + share * static_cast<double>(any.patches - 2)),
              static_cast<double>(*any.budget) + 1e-6);
  }
}

TEST(WindowBudget, SaysWhatItIsAbout) {
  constexpr std::uint64_t kBytes = std::uint64_t{300} << 20;
  EXPECT_EQ(budget_line(Level::pruned, load(450), kBytes),
            "its windows of 450 visual tokens come near its budget of 300MiB (500 visual tokens): at most 38 "
            "% of a "
            "patch's groups are sent");
  EXPECT_EQ(budget_line(Level::shortened, load(450, 50), kBytes),
            "its windows do not fit its budget of 300MiB (500 visual tokens): they forget their oldest "
            "frames; raise "
            "pruning.kv_budget, or shorten the window");
  EXPECT_THAT(budget_line(Level::shortened, load(450, 50, false), kBytes), HasSubstr("prune it by `scene`"));
  EXPECT_EQ(budget_line(Level::within, load(100), kBytes),
            "its windows fit its budget of 300MiB (500 visual tokens) again");
  WindowBudget::Load none = load(100);
  none.budget.reset();
  EXPECT_THAT(budget_line(Level::within, none, 0), Not(HasSubstr("visual tokens")));
}

}  // namespace
}  // namespace vigil::actors
