#include "engine/past/slab_room.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::past {
namespace {

using Range = SlabRoom::Range;

TEST(SlabRoomTest, TakesTheFirstRoomThatIsLargeEnough) {
  SlabRoom room;
  EXPECT_EQ(room.take(1, 1), std::nullopt) << "there is no slab";
  const std::int64_t first = room.add(100), second = room.add(50);
  EXPECT_EQ(room.bytes(), 150);
  EXPECT_EQ(room.take(101, 200), std::nullopt) << "no range goes over the end of a slab";
  EXPECT_EQ(room.take(40, 40), (Range{first, 0, 40}));
  EXPECT_EQ(room.take(40, 200), (Range{first, 40, 60})) << "all that is there";
  EXPECT_EQ(room.take(51, 60), std::nullopt);
  EXPECT_EQ(room.take(10, 30), (Range{second, 0, 30}));
  EXPECT_EQ(room.take(20, 20), (Range{second, 30, 20})) << "to the last byte";
  EXPECT_EQ(room.take(1, 1), std::nullopt);
}

TEST(SlabRoomTest, WhatIsGivenBackIsTakenAgainAndGapsGrowTogether) {
  SlabRoom room;
  const std::int64_t slab = room.add(100);
  const Range a = *room.take(30, 30), b = *room.take(30, 30);
  ASSERT_TRUE(room.take(40, 40));
  room.shorten(a, 0);
  EXPECT_EQ(room.take(31, 31), std::nullopt);
  room.shorten(b, 0);
  EXPECT_EQ(room.take(60, 60), (Range{slab, 0, 60}));
}

TEST(SlabRoomTest, OfARangeTheFirstBytesMayRemain) {
  SlabRoom room;
  const std::int64_t slab = room.add(100);
  const Range a = *room.take(1, 100);
  EXPECT_EQ(room.take(1, 1), std::nullopt);
  room.shorten(a, 30);
  EXPECT_EQ(room.take(70, 100), (Range{slab, 30, 70}));
}

TEST(SlabRoomTest, OnlyEmptySlabsGoAndNoMoreThanHaveTo) {
  SlabRoom room;
  const std::int64_t first = room.add(10);
  const Range held = *room.take(5, 5);
  const std::int64_t second = room.add(20), third = room.add(30);
  EXPECT_EQ(room.drop_empty(60), std::vector<std::int64_t>{});
  EXPECT_EQ(room.drop_empty(45), std::vector<std::int64_t>{second});
  EXPECT_EQ(room.bytes(), 40);
  EXPECT_EQ(room.drop_empty(0), std::vector<std::int64_t>{third});
  EXPECT_EQ(room.bytes(), 10) << "what has something stays";
  room.shorten(held, 0);
  EXPECT_EQ(room.drop_empty(9), std::vector<std::int64_t>{first});
  EXPECT_EQ(room.bytes(), 0);
  EXPECT_GT(room.add(5), third) << "no number is another slab's";
}

}  // namespace
}  // namespace vigil::past
