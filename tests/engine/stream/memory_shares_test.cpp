#include "engine/stream/memory_shares.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::stream {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> shared(std::int64_t budget, const std::vector<std::int64_t>& needs) {
  MemoryShares shares(budget);
  shares.divide(needs);
  std::vector<std::int64_t> all;
  for (const std::int64_t need : needs) all.push_back(shares.of(need));
  return all;
}

TEST(MemorySharesTest, WhereThereIsEnoughEachHasWhatItNeeds) {
  EXPECT_THAT(shared(100, {}), ElementsAre());
  EXPECT_THAT(shared(100, {100}), ElementsAre(100));
  EXPECT_THAT(shared(100, {20, 50, 30}), ElementsAre(20, 50, 30));
}

TEST(MemorySharesTest, OtherwiseTheyAreEqual) {
  EXPECT_THAT(shared(100, {101}), ElementsAre(100));
  EXPECT_THAT(shared(100, {90, 90}), ElementsAre(50, 50));
  EXPECT_THAT(shared(100, {200, 90, 900, 26}), ElementsAre(25, 25, 25, 25));
}

TEST(MemorySharesTest, WhatOneDoesNotNeedIsTheOthers) {
  EXPECT_THAT(shared(100, {10, 90, 90}), ElementsAre(10, 45, 45));
  EXPECT_THAT(shared(100, {90, 0, 30, 20}), ElementsAre(50, 0, 30, 20));
}

TEST(MemorySharesTest, NothingIsSharedOfNothing) {
  EXPECT_THAT(shared(0, {5, 0}), ElementsAre(0, 0));
  EXPECT_THAT(shared(-7, {5}), ElementsAre(0));
  EXPECT_THAT(shared(1, {5, 5}), ElementsAre(0, 0)) << "a byte is not divided";
}

TEST(MemorySharesTest, WhoComesLowersTheLevelAndWhoGoesRaisesIt) {
  MemoryShares shares(100);
  EXPECT_EQ(shares.of(1000), 1000) << "nobody was told";
  shares.divide({1000});
  EXPECT_EQ(shares.of(1000), 100);
  shares.divide({1000, 1000});
  EXPECT_EQ(shares.of(1000), 50);
  shares.divide({1000});
  EXPECT_EQ(shares.of(1000), 100);
}

TEST(MemorySharesTest, NeverMoreThanAllAndNothingIsLeftWhileSomebodyNeedsIt) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(shared(100, {kMost, kMost, kMost}), ElementsAre(33, 33, 33)) << "no sum of needs overflows";
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    const auto budget = static_cast<std::int64_t>(random() % 1000);
    std::vector<std::int64_t> needs(random() % 9);
    for (std::int64_t& need : needs) need = static_cast<std::int64_t>(random() % 400);
    const std::vector<std::int64_t> shares = shared(budget, needs);
    std::int64_t all = 0, level = 0;
    for (const std::int64_t share : shares) all += share, level = std::max(level, share);
    ASSERT_LE(all, budget);
    for (std::size_t of = 0; of < needs.size(); ++of) {
      ASSERT_LE(shares[of], needs[of]);
      if (shares[of] == needs[of]) continue;
      ASSERT_EQ(shares[of], level) << "nobody has more than one who has too little";
      ASSERT_GT(all, budget - static_cast<std::int64_t>(needs.size()));
    }
  }
}

}  // namespace
}  // namespace vigil::stream
