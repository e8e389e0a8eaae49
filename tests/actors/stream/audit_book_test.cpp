#include "actors/stream/audit_book.h"

#include <gtest/gtest.h>

#include "actors/messages/pruned_less.h"

namespace vigil::actors {
namespace {

using config::Pruning;
using config::Refresh;

constexpr auto kAnswers = static_cast<int>(AuditBook::kAnswers);

TEST(AuditBookTest, ThreeOfThirtyAnswersThatDifferAreAStep) {
  const config::PruningSettings pruning{.policy = Pruning::scene, .refresh = Refresh::none};
  AuditBook book;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(book.hear(i % 15 != 0, pruning)) << "two of thirty: " << i;
  EXPECT_EQ(book.steps(), 0);
  EXPECT_EQ(book.answers(), AuditBook::kAnswers);
  EXPECT_TRUE(book.hear(false, pruning));
  EXPECT_EQ(book.steps(), 1);
  EXPECT_EQ(book.answers(), 0U) << "what was said was of the step before";
}

TEST(AuditBookTest, StepsEndWhereAllIsComputed) {
  const config::PruningSettings pruning{.policy = Pruning::changes, .refresh = Refresh::none};
  AuditBook book;
  int steps = 0;
  for (int i = 0; i < 1000; ++i) steps += book.hear(false, pruning) ? 1 : 0;
  EXPECT_EQ(steps, 3) << "scene, none, and nothing reused";
  EXPECT_TRUE(computes_all(pruned_less(pruning, book.steps())));
  int back = 0;
  for (int i = 0; i < 10 * kAnswers; ++i) back += book.hear(true, pruning) ? 1 : 0;
  EXPECT_EQ(back, 3);
  EXPECT_EQ(book.steps(), 0);
}

TEST(AuditBookTest, AStepBackTakesThirtyAnswersOfWhichNoneDiffers) {
  const config::PruningSettings pruning{.policy = Pruning::scene, .refresh = Refresh::none};
  AuditBook book;
  for (int i = 0; i < 3; ++i) book.hear(false, pruning);
  ASSERT_EQ(book.steps(), 1);
  for (int i = 0; i < kAnswers - 1; ++i) EXPECT_FALSE(book.hear(true, pruning));
  EXPECT_FALSE(book.hear(false, pruning));
  for (int i = 0; i < kAnswers - 1; ++i) EXPECT_FALSE(book.hear(true, pruning));
  EXPECT_TRUE(book.hear(true, pruning)) << "the one that differed is past";
  EXPECT_EQ(book.steps(), 0);
}

TEST(PrunedLessTest, EachStepComputesMore) {
  const config::PruningSettings cheap{.policy = Pruning::changes, .refresh = Refresh::first_k, .audit = 7};
  EXPECT_EQ(pruned_less(cheap, 0), cheap);
  EXPECT_EQ(pruned_less(cheap, 1).policy, Pruning::scene);
  EXPECT_EQ(pruned_less(cheap, 2).policy, Pruning::none);
  EXPECT_EQ(pruned_less(cheap, 2).refresh, Refresh::first_k);
  EXPECT_TRUE(computes_all(pruned_less(cheap, 3)));
  EXPECT_EQ(pruned_less(cheap, 9).audit, 7) << "all else stays";
  for (const Pruning policy : {Pruning::codecsight, Pruning::reference, Pruning::dtd, Pruning::scene})
    EXPECT_EQ(pruned_less({.policy = policy}, 1).policy, Pruning::none);
}

}  // namespace
}  // namespace vigil::actors
