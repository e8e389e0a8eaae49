#include "actors/supervisor/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {

void PrintTo(const Routes::Decision& decision, std::ostream* out) {
  *out << decision.camera << " to " << (decision.device.empty() ? "nobody" : decision.device) << ' '
       << decision.reason;
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Decision = Routes::Decision;

TEST(Routes, ACameraThatStartsBeforeItsDeviceHasToldHowItIsWaitsForThat) {
  Routes routes({"cuda:0", "cuda:1"});
  EXPECT_EQ(routes.start("a"), std::nullopt);
  EXPECT_EQ(routes.start("b"), std::nullopt);
  EXPECT_THAT(routes.enter("cuda:0", DeviceState::up, "").cameras, ElementsAre(Decision{"a", "cuda:0"}));
  EXPECT_EQ(routes.start("a"), (Decision{"a", "cuda:0"})) << "its next incarnation";
  EXPECT_EQ(routes.start("c"), (Decision{"c", "cuda:0"}));
  EXPECT_THAT(routes.enter("cuda:1", DeviceState::up, "").cameras, ElementsAre(Decision{"b", "cuda:1"}));
}

TEST(Routes, WhileADeviceIsMadeAgainItsCamerasAreUnwatchedAndStay) {
  Routes routes({"cuda:0"});
  routes.enter("cuda:0", DeviceState::up, "");
  routes.start("a");
  const auto failed = routes.enter("cuda:0", DeviceState::restarting, "the vision actor failed: broken");
  EXPECT_THAT(
      failed.cameras,
      ElementsAre(Decision{"a", "", "cuda:0 is being started again: the vision actor failed: broken"}));
  EXPECT_EQ(failed.hopeless, "");
  EXPECT_EQ(routes.start("b"), (Decision{"b", "", "cuda:0 is being started again"}));
  routes.remove("a");
  EXPECT_THAT(routes.enter("cuda:0", DeviceState::up, "").cameras, ElementsAre(Decision{"b", "cuda:0"}));
}

TEST(Routes, TheCamerasOfALostDeviceMoveIfThereIsAnother) {
  Routes routes({"cuda:0", "cuda:1"});
  for (const char* device : {"cuda:0", "cuda:1"}) routes.enter(device, DeviceState::up, "");
  for (const char* camera : {"a", "b"}) routes.start(camera);
  const auto moved = routes.enter("cuda:0", DeviceState::lost, "broken");
  EXPECT_THAT(moved.cameras,
              ElementsAre(Decision{"a", "", "cuda:0 is lost: broken"}, Decision{"a", "cuda:1"}));
  EXPECT_EQ(moved.hopeless, "");
  const auto gone = routes.enter("cuda:1", DeviceState::lost, "broken, too");
  EXPECT_THAT(gone.cameras, ElementsAre(Decision{"a", "", "cuda:1 is lost: broken, too"},
                                        Decision{"b", "", "cuda:1 is lost: broken, too"}));
  EXPECT_EQ(gone.hopeless, "no device is left: cuda:1 is lost: broken, too");
  EXPECT_EQ(routes.start("c"), std::nullopt);
}

TEST(Routes, WhoMovesToADeviceThatIsMadeAgainWaitsForIt) {
  Routes routes({"cuda:0", "cuda:1"});
  for (const char* device : {"cuda:0", "cuda:1"}) routes.enter(device, DeviceState::up, "");
  routes.start("a");
  routes.enter("cuda:1", DeviceState::restarting, "broken");
  EXPECT_THAT(routes.enter("cuda:0", DeviceState::lost, "broken").cameras,
              ElementsAre(Decision{"a", "", "cuda:0 is lost: broken"},
                          Decision{"a", "", "cuda:1 is being started again"}));
  EXPECT_THAT(routes.enter("cuda:1", DeviceState::up, "").cameras, ElementsAre(Decision{"a", "cuda:1"}));
}

TEST(Routes, ADeviceWithoutCamerasLeavesNothingToSay) {
  Routes routes({"cuda:0", "cuda:1"});
  EXPECT_THAT(routes.enter("cuda:0", DeviceState::lost, "broken").cameras, IsEmpty());
  EXPECT_THAT(routes.enter("cuda:1", DeviceState::up, "").cameras, IsEmpty());
}

// Of a fleet, whose plan says which camera is where.
TEST(Routes, WithoutDevicesOfItsOwnItGoesByWhatOthersAssign) {
  Routes routes({});
  EXPECT_EQ(routes.start("a"), std::nullopt) << "nobody has said where";
  EXPECT_EQ(routes.assign("a", "gpu-1"), (Decision{"a", "", "waits for gpu-1", "", true}));
  EXPECT_EQ(routes.assign("a", "gpu-1"), std::nullopt) << "no news";
  EXPECT_THAT(routes.enter("gpu-1", DeviceState::up, "").cameras, ElementsAre(Decision{"a", "gpu-1"}));
  EXPECT_TRUE(routes.is_watched("a"));
  routes.enter("gpu-2", DeviceState::up, "");
  EXPECT_EQ(routes.start("a"), (Decision{"a", "gpu-1"}));
  EXPECT_EQ(routes.assign("a", "gpu-2"), (Decision{"a", "gpu-2"}));
  EXPECT_THAT(routes.enter("gpu-1", DeviceState::lost, "gone").cameras, IsEmpty());
  const Routes::Decisions gone = routes.enter("gpu-2", DeviceState::lost, "gone");
  EXPECT_THAT(gone.cameras, ElementsAre(Decision{"a", "", "gpu-2 is lost: gone"}));
  EXPECT_EQ(gone.hopeless, "") << "others may come";
  EXPECT_FALSE(routes.is_watched("a"));
  EXPECT_THAT(routes.enter("gpu-2", DeviceState::up, "").cameras, ElementsAre(Decision{"a", "gpu-2"}))
      << "it is still there by the plan";
}

TEST(Routes, ACameraThatMovesIsWatchedWhileOneOfItsDevicesIsUp) {
  Routes routes({});
  routes.enter("old", DeviceState::up, "");
  EXPECT_EQ(routes.assign("a", "old"), (Decision{"a", "old"}));
  EXPECT_EQ(routes.assign("a", "new", {"old"}), (Decision{"a", "old"})) << "the other one is not there yet";
  EXPECT_EQ(routes.assign("a", "new", {"old"}), std::nullopt) << "no news";
  EXPECT_TRUE(routes.is_watched("a"));
  const Decision both{"a", "new", "", "old"};
  EXPECT_THAT(routes.enter("new", DeviceState::up, "").cameras, ElementsAre(both));
  EXPECT_EQ(routes.start("a"), both);
  EXPECT_THAT(routes.enter("new", DeviceState::restarting, "broken").cameras,
              ElementsAre(Decision{"a", "old"}));
  EXPECT_THAT(routes.enter("new", DeviceState::up, "").cameras, ElementsAre(both));
  EXPECT_THAT(routes.enter("old", DeviceState::lost, "gone").cameras, ElementsAre(Decision{"a", "new"}));
  EXPECT_THAT(routes.enter("new", DeviceState::lost, "gone, too").cameras,
              ElementsAre(Decision{"a", "", "new is lost: gone, too"}));
  EXPECT_FALSE(routes.is_watched("a"));
  EXPECT_THAT(routes.enter("old", DeviceState::up, "").cameras, ElementsAre(Decision{"a", "old"}));
  EXPECT_THAT(routes.enter("old", DeviceState::restarting, "broken").cameras,
              ElementsAre(Decision{"a", "", "old cannot be reached: broken"}));
  EXPECT_EQ(routes.assign("b", "old"), (Decision{"b", "", "old cannot be reached"}));
}

TEST(Routes, AFormerOfTheSameStreamGoesOnUntilTheDeviceIsUp) {
  Routes routes({});
  routes.enter("v1>s", DeviceState::up, "");
  routes.assign("a", "v1>s");
  EXPECT_EQ(routes.assign("a", "v2>s", {"v1>s", true}), (Decision{"a", "v1>s"}));
  EXPECT_EQ(routes.assign("a", "v2>s", {"v1>s", true}), std::nullopt) << "no news";
  EXPECT_THAT(routes.enter("v2>s", DeviceState::up, "").cameras, ElementsAre(Decision{"a", "v2>s"}))
      << "one tower encodes for one stream";
  EXPECT_THAT(routes.enter("v2>s", DeviceState::restarting, "broken").cameras,
              ElementsAre(Decision{"a", "v1>s"}));
}

TEST(Routes, OneThatHasMovedIsItsNewDevicesAlone) {
  Routes routes({});
  for (const char* device : {"old", "new"}) routes.enter(device, DeviceState::up, "");
  routes.assign("a", "new", {"old"});
  EXPECT_EQ(routes.assign("a", "new"), (Decision{"a", "new"}));
  EXPECT_THAT(routes.enter("old", DeviceState::lost, "gone").cameras, IsEmpty());
  routes.assign("a", "next", {"new"});
  routes.remove("a");
  EXPECT_THAT(routes.enter("new", DeviceState::lost, "gone").cameras, IsEmpty());
}

TEST(Routes, ACameraThatIsWithheldIsNowhereUntilItIsAssignedAgain) {
  Routes routes({});
  for (const char* device : {"old", "new"}) routes.enter(device, DeviceState::up, "");
  routes.assign("a", "new", {"old"});
  const Decision refused{"a", "", "refused: no room"};
  EXPECT_EQ(routes.withhold("a", "refused: no room"), refused);
  EXPECT_EQ(routes.withhold("a", "refused: no room"), std::nullopt) << "no news";
  EXPECT_FALSE(routes.is_watched("a"));
  EXPECT_TRUE(routes.is_withheld("a"));
  EXPECT_EQ(routes.start("a"), refused) << "its next incarnation";
  for (const char* device : {"old", "new"}) {
    EXPECT_THAT(routes.enter(device, DeviceState::restarting, "broken").cameras, IsEmpty()) << device;
    EXPECT_THAT(routes.enter(device, DeviceState::up, "").cameras, IsEmpty()) << device;
  }
  EXPECT_EQ(routes.withhold("a", "refused: still"), (Decision{"a", "", "refused: still"}));
  EXPECT_EQ(routes.assign("a", "new"), (Decision{"a", "new"})) << "where it was";
  EXPECT_FALSE(routes.is_withheld("a"));
  EXPECT_EQ(routes.start("a"), (Decision{"a", "new"}));
}

TEST(Routes, ACameraThatIsGoneIsNotWithheldAnyMore) {
  Routes routes({});
  EXPECT_EQ(routes.withhold("a", "refused: no room"), (Decision{"a", "", "refused: no room"}));
  routes.remove("a");
  EXPECT_FALSE(routes.is_withheld("a"));
  EXPECT_EQ(routes.start("a"), std::nullopt);
}

}  // namespace
}  // namespace vigil::actors
