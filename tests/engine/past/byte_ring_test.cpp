#include "engine/past/byte_ring.h"

#include <optional>

#include <gtest/gtest.h>

namespace vigil::past {
namespace {

using Range = ByteRing::Range;

TEST(ByteRingTest, RangesFollowEachOtherAndGoRoundTheEnd) {
  ByteRing ring(100);
  EXPECT_EQ(ring.take(101), std::nullopt);
  EXPECT_EQ(ring.take(40), (Range{0, 40}));
  EXPECT_EQ(ring.take(40), (Range{40, 40}));
  EXPECT_EQ(ring.take(21), std::nullopt) << "neither behind the newest nor before the oldest";
  ring.drop_oldest();
  EXPECT_EQ(ring.take(30), (Range{0, 30})) << "a range is contiguous";
  EXPECT_EQ(ring.take(11), std::nullopt) << "it would reach the oldest";
  EXPECT_EQ(ring.take(10), (Range{30, 10}));
  EXPECT_EQ(ring.take(1), std::nullopt);
  ring.drop_oldest();
  EXPECT_EQ(ring.take(60), (Range{40, 60}));
}

TEST(ByteRingTest, TheNewestCanBeTakenAnew) {
  ByteRing ring(10);
  EXPECT_EQ(ring.take(4), (Range{0, 4}));
  EXPECT_EQ(ring.take(4), (Range{4, 4}));
  ring.drop_newest();
  EXPECT_EQ(ring.take(6), (Range{4, 6}));
  ring.drop_newest();
  ring.drop_newest();
  EXPECT_EQ(ring.take(10), (Range{0, 10}));
}

}  // namespace
}  // namespace vigil::past
