#include "engine/speculate/draft_counts.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::speculate {
namespace {

TEST(DraftCounts, CountsAsVllmDoes) {
  DraftCounts counts;
  counts.passed(3, 2, 3);
  counts.passed(0, 0, 1);  // a pass, and no draft
  counts.passed(3, 3, 4);
  counts.passed(2, 0, 1);
  EXPECT_EQ(counts.num_drafts(), 3U);
  EXPECT_EQ(counts.num_draft_tokens(), 8U);
  EXPECT_EQ(counts.num_accepted_tokens(), 5U);
  const auto& at = counts.num_accepted_tokens_per_pos();
  EXPECT_EQ(at[0], 2U);
  EXPECT_EQ(at[1], 2U);
  EXPECT_EQ(at[2], 1U);
  EXPECT_EQ(at[3], 0U);
  EXPECT_EQ(counts.passes(), 4U);
  EXPECT_EQ(counts.tokens(), 9U);
  EXPECT_DOUBLE_EQ(counts.tokens_per_pass(), 9.0 / 4);
}

TEST(DraftCounts, RoundsThatWereAcceptedWholeAddUp) {
  DraftCounts counts;
  EXPECT_EQ(counts.mean_accepted_tokens(), 0);
  counts.passed(4, 4, 4);
  counts.passed(4, 4, 4);
  EXPECT_EQ(counts.mean_accepted_tokens(), 0);  // still on its way
  counts.passed(4, 1, 2);
  EXPECT_EQ(counts.mean_accepted_tokens(), 9);
  counts.passed(0, 0, 1);
  counts.passed(4, 0, 1);
  EXPECT_EQ(counts.mean_accepted_tokens(), 4.5);
  counts.passed(3, 3, 3);
  counts.ended();
  counts.ended();
  EXPECT_EQ(counts.mean_accepted_tokens(), 4);
}

TEST(DraftCounts, AddUpOverSequences) {
  DraftCounts all, a, b;
  a.passed(2, 2, 3);
  b.passed(20, 18, 19);
  all.add(a);
  all.add(b);
  EXPECT_EQ(all.num_drafts(), 2U);
  EXPECT_EQ(all.num_accepted_tokens(), 20U);
  EXPECT_EQ(all.num_accepted_tokens_per_pos()[1], 2U);
  EXPECT_EQ(all.num_accepted_tokens_per_pos()[DraftCounts::kPositions - 1], 1U);
  EXPECT_EQ(all.tokens_per_pass(), 11);
  EXPECT_EQ(all.mean_accepted_tokens(), 10);
  all.passed(1, 0, 1);  // its own run, not theirs
  EXPECT_NEAR(all.mean_accepted_tokens(), 20.0 / 3, 1e-12);
}

TEST(DraftCounts, RefuseWhatCannotBe) {
  DraftCounts counts;
  EXPECT_EQ(counts.tokens_per_pass(), 0);
  EXPECT_THROW(counts.passed(2, 3, 4), std::invalid_argument);
  EXPECT_THROW(counts.passed(4, 3, 2), std::invalid_argument);
  EXPECT_EQ(counts.passes(), 0U);
}

}  // namespace
}  // namespace vigil::speculate
