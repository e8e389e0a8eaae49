#include "engine/stream/pass_plan.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::stream {
namespace {

using Shares = std::vector<WindowShare>;

/// Of a row each.
std::vector<std::int64_t> texts(std::size_t count) {
  return std::vector<std::int64_t>(count, 1);
}

TEST(PassPlanTest, TextsGoFirstAndWindowsTakeWhatIsLeft) {
  const std::vector<WindowWork> windows{{100, {5, 5}}, {30, {}}};
  const PassShares shares = plan_pass({.rows = 60}, texts(3), windows);
  EXPECT_EQ(shares.texts, 3U);
  EXPECT_EQ(shares.windows, (Shares{{0, 57, 0}})) << "texts are rows, too";
}

TEST(PassPlanTest, WhatIsProposedForTextsTakesRows) {
  const std::vector<WindowWork> windows{{100, {5, 5}}};
  const std::vector<std::int64_t> rows{1, 9, 4, 8};
  const PassShares shares = plan_pass({.rows = 60, .texts = 3}, rows, windows);
  EXPECT_EQ(shares.texts, 3U);
  EXPECT_EQ(shares.windows, (Shares{{0, 60 - 14, 0}}));
  // Each text goes on, whatever it takes.
  EXPECT_EQ(plan_pass({.rows = 8}, rows, windows).texts, 4U);
  EXPECT_TRUE(plan_pass({.rows = 8}, rows, windows).windows.empty());
}

TEST(PassPlanTest, TheNextWindowBeginsWhereOneIsDone) {
  const std::vector<WindowWork> windows{{100, {5, 5}}, {300, {7}}};
  EXPECT_EQ(plan_pass({.rows = 200}, texts(0), windows).windows, (Shares{{0, 100, 2}, {1, 90, 0}}));
}

TEST(PassPlanTest, QuestionsAreAskedWhole) {
  const std::vector<WindowWork> windows{{0, {50, 60, 70}}, {10, {}}};
  EXPECT_EQ(plan_pass({.rows = 120}, texts(0), windows).windows, (Shares{{0, 0, 2}}))
      << "the third comes before the next window";
  const std::vector<WindowWork> large{{0, {500}}};
  EXPECT_EQ(plan_pass({.rows = 120}, texts(0), large).windows, (Shares{{0, 0, 1}}))
      << "alone, whatever its size";
}

TEST(PassPlanTest, QuestionsMayWaitForAPassOfTheirOwn) {
  const PassLimits limits{.rows = 200, .asks_at_once = false};
  const std::vector<WindowWork> windows{{100, {5}}, {300, {7}}};
  EXPECT_EQ(plan_pass(limits, texts(0), windows).windows, (Shares{{0, 100, 0}, {1, 100, 0}}));
  const std::vector<WindowWork> filled{{0, {5}}, {200, {7}}};
  EXPECT_EQ(plan_pass(limits, texts(0), filled).windows, (Shares{{0, 0, 1}, {1, 195, 0}}));
  const std::vector<WindowWork> large{{0, {250}}, {200, {7}}};
  EXPECT_TRUE(plan_pass(limits, texts(3), large).windows.empty())
      << "its turn comes when the texts have ended";
}

TEST(PassPlanTest, WhatWasNotAskedYetFillsPassesUp) {
  const PassLimits limits{.rows = 200, .rows_filled = 90};
  const std::vector<WindowWork> ahead{{60, {}, false}, {300, {}, false}};
  EXPECT_EQ(plan_pass(limits, texts(0), ahead).windows, (Shares{{0, 60, 0}, {1, 140, 0}}))
      << "nothing else is there";
  EXPECT_EQ(plan_pass(limits, texts(3), ahead).windows, (Shares{{0, 60, 0}, {1, 27, 0}}));
  const std::vector<WindowWork> both{{50, {5}}, {300, {}, false}};
  EXPECT_EQ(plan_pass(limits, texts(0), both).windows, (Shares{{0, 50, 1}, {1, 35, 0}}));
  const std::vector<WindowWork> full{{85, {5}}, {300, {}, false}};
  EXPECT_EQ(plan_pass(limits, texts(0), full).windows, (Shares{{0, 85, 1}}));
}

TEST(PassPlanTest, PassesWithTextsAreShorter) {
  const PassLimits limits{.rows = 200, .rows_with_texts = 50};
  const std::vector<WindowWork> windows{{300, {}}};
  EXPECT_EQ(plan_pass(limits, texts(0), windows).windows, (Shares{{0, 200, 0}}));
  EXPECT_EQ(plan_pass(limits, texts(1), windows).windows, (Shares{{0, 49, 0}}));
  const PassLimits pressed{.rows = 20, .rows_with_texts = 50};
  EXPECT_EQ(plan_pass(pressed, texts(1), windows).windows, (Shares{{0, 19, 0}})) << "where memory is short";
}

TEST(PassPlanTest, KeepsToItsLimits) {
  const std::vector<WindowWork> windows(10, {1, {}});
  const PassShares shares = plan_pass({.rows = 200, .texts = 4, .windows = 3}, texts(9), windows);
  EXPECT_EQ(shares.texts, 4U);
  EXPECT_EQ(shares.windows.size(), 3U);
  EXPECT_TRUE(plan_pass({}, texts(0), {}).windows.empty());
}

}  // namespace
}  // namespace vigil::stream
