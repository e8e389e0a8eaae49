// Which of its cameras a node is refused, and what whoever plans hears of that.
#include "fleet/node/refusal_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

cluster::PlannedCamera with(cluster::Fence fence, const std::string& hand_to = "") {
  cluster::PlannedCamera camera;
  camera.fence = fence;
  camera.hand_to = hand_to;
  return camera;
}

TEST(RefusalBook, TellsOfTheHighestFenceUntilTheCameraHasAHigherOne) {
  RefusalBook book;
  EXPECT_THAT(book.too_low({{"gate", with(5)}}), IsEmpty());
  book.refused("gate", 9);
  book.refused("gate", 7);
  EXPECT_THAT(book.too_low({{"gate", with(5)}, {"yard", with(6)}}), UnorderedElementsAre(5, 9));
  EXPECT_THAT(book.too_low({{"gate", with(5)}}), UnorderedElementsAre(5, 9)) << "until it is mended";
  EXPECT_THAT(book.too_low({{"gate", with(10)}}), IsEmpty());
  EXPECT_THAT(book.too_low({{"gate", with(5)}}), IsEmpty()) << "what was mended is forgotten";
}

TEST(RefusalBook, TheFenceThatTheCameraHasIsTooLowWhereSomebodyRefusesByIt) {
  RefusalBook book;
  book.refused("gate", 5);
  EXPECT_THAT(book.too_low({{"gate", with(5)}}), UnorderedElementsAre(5));
}

TEST(RefusalBook, WhatIsHandedOverOrNotTheNodesIsNotTold) {
  RefusalBook book;
  book.refused("gate", 9);
  book.refused("yard", 9);
  EXPECT_THAT(book.too_low({{"gate", with(5, "n2")}}), IsEmpty());
  EXPECT_THAT(book.too_low({{"gate", with(5)}, {"yard", with(5)}}), IsEmpty()) << "both are forgotten";
}

}  // namespace
}  // namespace vigil::fleet
