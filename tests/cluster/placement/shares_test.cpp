#include "cluster/placement/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Shares, AreByWeight) {
  EXPECT_THAT(shares_of({{100, 1}, {100, 3}}, 80), ElementsAre(20, 60));
  EXPECT_THAT(shares_of({{100, 1}, {100, 0}, {100, 1}}, 80), ElementsAre(40, 0, 40));
  EXPECT_THAT(shares_of({}, 80), IsEmpty());
  EXPECT_THAT(shares_of({{100, 0}}, 80), ElementsAre(0));
  EXPECT_THAT(shares_of({{100, 1}, {100, 1}}, 0), ElementsAre(0, 0));
}

TEST(Shares, AreRoundedUpSoThatAllFits) {
  EXPECT_THAT(shares_of({{9, 1}, {9, 1}, {9, 1}}, 10), ElementsAre(4, 4, 4));
}

TEST(Shares, WhatIsBeyondACapacityIsTheOthers) {
  EXPECT_THAT(shares_of({{10, 1}, {100, 1}, {100, 2}}, 100), ElementsAre(10, 30, 60));
  // One that is full makes another full.
  EXPECT_THAT(shares_of({{10, 1}, {31, 1}, {200, 1}}, 100), ElementsAre(10, 31, 59));
  EXPECT_THAT(shares_of({{0, 1}, {31, 1}}, 20), ElementsAre(0, 20));
}

TEST(Shares, AreTheCapacitiesWhereThereIsMoreThanThese) {
  EXPECT_THAT(shares_of({{10, 1}, {20, 5}}, 31), ElementsAre(10, 20));
  EXPECT_THAT(shares_of({{10, 1}, {20, 5}}, 30), ElementsAre(10, 20));
}

TEST(Shares, DoNotOverflow) {
  constexpr std::int64_t kMostWeight = 1'000'000'000'000;
  EXPECT_THAT(shares_of({{kMostCapacity, kMostWeight}, {kMostCapacity, 1}, {kMostCapacity, kMostWeight}},
                        kMostCapacity),
              ElementsAre(1'999'999'999'999'000'001, 2'000'000, 1'999'999'999'999'000'001));
}

}  // namespace
}  // namespace vigil::cluster
