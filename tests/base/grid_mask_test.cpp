#include "base/grid_mask.h"

#include <random>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::base {
namespace {

using ::testing::IsEmpty;

TEST(GridMaskTest, HasAllOrNoneAtFirst) {
  for (const auto& [height, width] : {std::pair{1, 1}, {8, 8}, {3, 43}, {16, 16}, {5, 7}}) {
    const GridMask all = GridMask::all(height, width);
    EXPECT_EQ(all.count(), height * width);
    EXPECT_TRUE(all.has_all());
    EXPECT_EQ(all.list().size(), static_cast<std::size_t>(height * width));
    EXPECT_EQ(all.list().back(), height * width - 1);
    const GridMask none = GridMask::none(height, width);
    EXPECT_EQ(none.count(), 0);
    EXPECT_THAT(none.list(), IsEmpty());
    EXPECT_FALSE(none == all);
  }
  EXPECT_TRUE(GridMask().has_all()) << "of no cells";
  EXPECT_EQ(GridMask(), GridMask::none(0, 0));
}

TEST(GridMaskTest, CountsWhatWasAddedAndListsItInOrder) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 50; ++turn) {
    const auto height = static_cast<std::int64_t>(1 + random() % 20);
    const auto width = static_cast<std::int64_t>(1 + random() % 20);
    GridMask mask = GridMask::none(height, width);
    std::set<std::int32_t> expected;
    for (int i = 0; i < 60; ++i) {
      const auto cell = static_cast<std::int64_t>(random()) % (height * width);
      mask.add(cell / width, cell % width);
      expected.insert(static_cast<std::int32_t>(cell));
      ASSERT_TRUE(mask.has(cell));
    }
    ASSERT_EQ(mask.count(), static_cast<std::int64_t>(expected.size()));
    ASSERT_EQ(mask.list(), std::vector<std::int32_t>(expected.begin(), expected.end()));
    ASSERT_EQ(mask.has_all(), mask == GridMask::all(height, width));
  }
}

TEST(GridMaskTest, SizesThatAreNoneAreRefused) {
  EXPECT_THROW(GridMask::all(-1, 4), std::invalid_argument);
  EXPECT_THROW(GridMask::none(4, -1), std::invalid_argument);
  EXPECT_THROW(GridMask::none(1 << 20, 1 << 20), std::invalid_argument);
}

TEST(GridMaskTest, AUnionHasWhatEitherHas) {
  GridMask a = GridMask::none(9, 9), b = GridMask::none(9, 9);
  for (const int cell : {0, 3, 80}) a.add(cell);
  for (const int cell : {3, 4, 64}) b.add(cell);
  a.add(b);
  EXPECT_EQ(a.list(), (std::vector<std::int32_t>{0, 3, 4, 64, 80}));
  EXPECT_EQ(a.count(), 5);
  EXPECT_EQ(b.count(), 3);
  a.add(GridMask::all(9, 9));
  EXPECT_EQ(a, GridMask::all(9, 9));
  EXPECT_THROW(a.add(GridMask::all(9, 8)), std::invalid_argument);
}

TEST(GridMaskTest, WithinAnotherAreThoseThatBothHave) {
  GridMask a = GridMask::none(9, 9), b = GridMask::none(9, 9);
  for (const int cell : {0, 3, 64, 80}) a.add(cell);
  for (const int cell : {3, 4, 64}) b.add(cell);
  EXPECT_EQ(a.within(b).list(), (std::vector<std::int32_t>{3, 64}));
  EXPECT_EQ(a.within(b).count(), 2);
  EXPECT_EQ(b.within(a), a.within(b));
  EXPECT_EQ(a.within(GridMask::all(9, 9)), a);
  EXPECT_EQ(a.within(GridMask::none(9, 9)), GridMask::none(9, 9));
  EXPECT_THROW(static_cast<void>(a.within(GridMask::all(9, 8))), std::invalid_argument);
}

TEST(GridMaskTest, AMaskHasAnotherIfItHasAllOfItsCells) {
  GridMask a = GridMask::none(9, 9), b = GridMask::none(9, 9);
  for (const int cell : {0, 3, 80}) a.add(cell);
  EXPECT_TRUE(a.has(b)) << "of nothing, all";
  b.add(80);
  EXPECT_TRUE(a.has(b));
  b.add(79);
  EXPECT_FALSE(a.has(b));
  EXPECT_FALSE(b.has(a));
  EXPECT_TRUE(GridMask::all(9, 9).has(b));
  EXPECT_THROW(static_cast<void>(a.has(GridMask::all(9, 8))), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::base
