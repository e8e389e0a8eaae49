// A registry that was set back or replaced, among answers that come in any order.
#include "cluster/registry/registry_guard.h"

#include <gtest/gtest.h>

#include "cluster/registry/registry_history.h"

namespace vigil::cluster {
namespace {

using Answer = RegistryHistory::Answer;

RegistryHeader answer(std::uint64_t cluster, Revision revision) {
  return {.cluster = cluster, .revision = revision, .history = 0};
}

TEST(RegistryHistoryTest, AnswersThatOvertakeEachOtherAreOneHistory) {
  RegistryHistory history;
  const auto first = history.ask(), second = history.ask();
  EXPECT_EQ(history.answered(second, answer(7, 20), Answer::current).history, 1U);
  EXPECT_EQ(history.answered(first, answer(7, 10), Answer::current).history, 1U) << "it was asked before";
  EXPECT_EQ(history.answered(history.ask(), answer(7, 20), Answer::current).history, 1U);
}

TEST(RegistryHistoryTest, LessThanWasKnownWhenItWasAskedForIsAnotherHistory) {
  RegistryHistory history;
  history.answered(history.ask(), answer(7, 20), Answer::current);
  const auto late = history.ask(), later = history.ask();
  EXPECT_EQ(history.answered(history.ask(), answer(7, 19), Answer::may_lag).history, 1U)
      << "a server that is behind is none";
  EXPECT_EQ(history.answered(history.ask(), answer(7, 19), Answer::current).history, 2U);
  EXPECT_EQ(history.answered(late, answer(7, 18), Answer::current).history, 1U) << "said once";
  EXPECT_EQ(history.answered(later, answer(7, 100), Answer::current).history, 1U);
  EXPECT_EQ(history.answered(history.ask(), answer(7, 19), Answer::current).history, 2U)
      << "an answer to what was asked before is no knowledge of now";
  EXPECT_EQ(history.answered(history.ask(), answer(7, 18), Answer::current).history, 3U);
}

TEST(RegistryHistoryTest, AnotherClusterIsAnotherHistoryWhateverItsRevision) {
  RegistryHistory history;
  EXPECT_EQ(history.answered(history.ask(), answer(7, 20), Answer::may_lag).history, 1U);
  EXPECT_EQ(history.answered(history.ask(), answer(8, 30), Answer::may_lag).history, 2U);
  EXPECT_EQ(history.answered(history.ask(), answer(8, 30), Answer::current).history, 2U);
  EXPECT_EQ(history.current(), 2U);
}

TEST(RegistryHistoryTest, WhatALaggingServerTellsIsKnownToo) {
  RegistryHistory history;
  history.answered(history.ask(), answer(7, 20), Answer::may_lag);
  EXPECT_EQ(history.answered(history.ask(), answer(7, 19), Answer::current).history, 2U);
}

TEST(RegistryGuardTest, SaysOnceWhatHappened) {
  RegistryGuard guard;
  EXPECT_EQ(guard.see({0xabc, 20, 1}), std::nullopt);
  EXPECT_EQ(guard.see({0xabc, 30, 1}), std::nullopt);
  EXPECT_EQ(guard.see({0xabc, 25, 1}), std::nullopt);
  EXPECT_EQ(guard.see({0xabc, 10, 2}), "went back from revision 30 to 10, as a restored backup does");
  EXPECT_EQ(guard.see({0xabc, 30, 1}), std::nullopt) << "from before";
  EXPECT_EQ(guard.see({0xabc, 9, 2}), std::nullopt);
  EXPECT_EQ(guard.see({0xffff'ffff'ffff'ffff, 50, 3}),
            "replaced: it is cluster ffffffffffffffff now, and was abc");
  EXPECT_EQ(guard.see({0xffff'ffff'ffff'ffff, 5, 5}),
            "went back from revision 50 to 5, as a restored backup does");
}

TEST(RegistryGuardTest, BeginsWithAnyHistory) {
  RegistryGuard guard;
  EXPECT_EQ(guard.see({1, 20, 4}), std::nullopt);
  EXPECT_EQ(guard.see({1, 20, 4}), std::nullopt);
}

}  // namespace
}  // namespace vigil::cluster
