#include "actors/supervisor/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Placement, SpreadsCamerasAndKeepsThemWhereTheyAre) {
  Placement placement({"cuda:0", "cuda:1"});
  EXPECT_EQ(placement.place("a"), "cuda:0");
  EXPECT_EQ(placement.place("b"), "cuda:1");
  EXPECT_EQ(placement.place("c"), "cuda:0");
  EXPECT_EQ(placement.place("a"), "cuda:0");
  placement.remove("a");
  placement.remove("c");
  EXPECT_EQ(placement.place("d"), "cuda:0");
  placement.enter("cuda:0", DeviceState::restarting);
  EXPECT_EQ(placement.place("d"), "cuda:0") << "it comes back";
  EXPECT_EQ(placement.place("e"), "cuda:1");
  EXPECT_EQ(placement.place("f"), "cuda:1") << "one that is up, however many it has";
  placement.enter("cuda:1", DeviceState::restarting);
  EXPECT_EQ(placement.place("g"), "cuda:0");
}

TEST(Placement, ALostDeviceLosesItsCamerasToTheOthers) {
  Placement placement({"cuda:0", "cuda:1", "cuda:2"});
  for (const char* camera : {"a", "b", "c", "d"}) placement.place(camera);
  const auto moves = placement.lose("cuda:0");
  ASSERT_EQ(moves.size(), 2U);
  EXPECT_EQ(moves[0].camera, "a");
  EXPECT_EQ(moves[0].device, "cuda:1");
  EXPECT_EQ(moves[1].camera, "d");
  EXPECT_EQ(moves[1].device, "cuda:2");
  EXPECT_THAT(placement.cameras("cuda:0"), IsEmpty());
  placement.lose("cuda:1");
  EXPECT_TRUE(placement.any_left());
  for (const auto& move : placement.lose("cuda:2")) EXPECT_EQ(move.device, std::nullopt) << move.camera;
  EXPECT_FALSE(placement.any_left());
  EXPECT_EQ(placement.place("e"), std::nullopt);
}

}  // namespace
}  // namespace vigil::actors
