// Streams that move: whoever answered before goes on until their windows are full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/planning/planned_fleet.h"

namespace vigil::cluster {
namespace {

using ::testing::IsEmpty;

/// A camera node whose cameras' streams are on some nodes.
class PlannerStreamsTest : public testing::PlannedFleet {
 protected:
  void start(int cameras, bool tells = true) {
    add("c", {NodeRole::camera});
    for (int i = 0; i < cameras; ++i) input_.cameras.push_back({"cam-" + std::to_string(1000 + i)});
    if (tells) input_.filled["c"];
  }
  /// Their tower and their streams are on nodes of their own.
  void start_apart(int cameras) {
    start(cameras);
    add("v1", {NodeRole::vision});
    add("s1", {NodeRole::stream, NodeRole::generate});
    plan();
  }
  void drain(const std::string& name) { input_.nodes.at(name).state = NodeState::draining; }
  /// Plans until nothing changes, and writes it.
  Planning plan() {
    for (int round = 0; round < 100; ++round) {
      Planning planning = plan_fleet(input_, options_);
      if (planning.changes.empty()) return planning;
      for (const PlanChange& change : planning.changes) write(change);
    }
    ADD_FAILURE() << "the plan does not come to rest";
    return {};
  }
  const std::map<std::string, PlannedCamera>& cameras() const { return input_.plan.at("c").cameras; }
  const PlannedCamera& first() const { return cameras().begin()->second; }
  void fill_all() {
    for (const auto& [camera, entry] : cameras()) input_.filled["c"].insert(entry.stream_fence);
  }
};

TEST_F(PlannerStreamsTest, WhoDrainsAnswersUntilTheStreamIsFullElsewhere) {
  start(1);
  gpu("old");
  plan();
  EXPECT_EQ(first().stream, "old");
  EXPECT_EQ(first().former_stream, "") << "it was nowhere before";
  EXPECT_EQ(first().stream_fence, 0U);
  gpu("new");
  drain("old");
  EXPECT_EQ(plan().fillings, 1U);
  EXPECT_EQ(first().stream, "new");
  EXPECT_EQ(first().former_stream, "old");
  EXPECT_EQ(first().former_vision, "") << "the same node";
  const Fence fence = first().stream_fence;
  EXPECT_GT(fence, first().fence);
  EXPECT_GE(input_.plan.at("c").fence, fence) << "nodes see it with the plan's";
  input_.filled["c"] = {fence - 1};
  EXPECT_EQ(plan().fillings, 1U) << "of another move";
  fill_all();
  EXPECT_EQ(plan().fillings, 0U);
  EXPECT_EQ(first().former_stream, "");
  EXPECT_EQ(first().stream, "new");
}

TEST_F(PlannerStreamsTest, AFormerThatIsGoneOrBeginsAnewIsNone) {
  start(1);
  gpu("old");
  plan();
  gpu("new");
  drain("old");
  plan();
  ASSERT_EQ(first().former_stream, "old");
  input_.nodes.erase("old");
  EXPECT_EQ(plan().fillings, 0U);
  EXPECT_EQ(first().former_stream, "");
  gpu("next");
  input_.nodes.erase("new");
  plan();
  EXPECT_EQ(first().stream, "next");
  EXPECT_EQ(first().former_stream, "") << "the one before is gone";
}

TEST_F(PlannerStreamsTest, WhereAPlanOfLongAgoSaysThatAStreamIsItHasNoFormer) {
  start(1);
  gpu("old");
  plan();
  const FleetPlan backup = input_.plan;
  gpu("new");
  drain("old");
  plan();
  const FleetPlan moving = input_.plan;
  input_.nodes.at("c").highest_fence = first().stream_fence + 10;
  for (const FleetPlan& restored : {backup, moving}) {
    input_.plan = restored;
    EXPECT_EQ(plan().fillings, 0U);
    EXPECT_EQ(first().stream, "new");
    EXPECT_EQ(first().former_stream, "") << "its windows are of another tenure";
    EXPECT_GT(first().fence, input_.nodes.at("c").highest_fence);
  }
}

TEST_F(PlannerStreamsTest, TheFirstOneAnswersUntilSomeOtherIsFull) {
  start(1);
  gpu("old");
  plan();
  gpu("new");
  drain("old");
  plan();
  const Fence fence = first().stream_fence;
  input_.nodes.erase("new");
  gpu("next");
  plan();
  EXPECT_EQ(first().stream, "next");
  EXPECT_EQ(first().former_stream, "old");
  EXPECT_GT(first().stream_fence, fence) << "what was full there is not here";
}

TEST_F(PlannerStreamsTest, WhereNobodyElseHasRoomItGoesBack) {
  start(1);
  gpu("old");
  plan();
  gpu("new");
  drain("old");
  plan();
  input_.nodes.erase("new");
  EXPECT_THAT(plan().unplaced, IsEmpty());
  EXPECT_EQ(first().stream, "old");
  EXPECT_EQ(first().vision, "old");
  EXPECT_EQ(first().former_stream, "");
  gpu("next");
  plan();
  EXPECT_EQ(first().stream, "next");
  EXPECT_EQ(first().former_stream, "old");
}

TEST_F(PlannerStreamsTest, AllThatDrainsMovesAndWhatEvensOutIsBounded) {
  options_.most_moves = 5;
  start(40);
  gpu("a");
  plan();
  gpu("b");
  EXPECT_EQ(plan().fillings, 5U) << "of a node that stays";
  fill_all();
  EXPECT_EQ(plan().fillings, 5U) << "the next ones";
  drain("a");
  plan();
  for (const auto& [camera, entry] : cameras()) EXPECT_EQ(entry.stream, "b") << camera;
}

TEST_F(PlannerStreamsTest, ANodeOfABuildThatDoesNotTellHasNoFormers) {
  start(1, false);
  gpu("old");
  plan();
  gpu("new");
  drain("old");
  EXPECT_EQ(plan().fillings, 0U);
  EXPECT_EQ(first().stream, "new");
  EXPECT_EQ(first().former_stream, "");
  EXPECT_EQ(first().stream_fence, 0U);
}

TEST_F(PlannerStreamsTest, ANodeThatBecomesSuchABuildIsNotWaitedFor) {
  start(1);
  gpu("old");
  plan();
  gpu("new");
  drain("old");
  ASSERT_EQ(plan().fillings, 1U);
  input_.filled.clear();
  EXPECT_EQ(plan().fillings, 0U);
}

TEST_F(PlannerStreamsTest, TowersApartAreKeptWithTheStreamsThatTheyEncodeFor) {
  start_apart(1);
  ASSERT_EQ(first().vision, "v1");
  add("s2", {NodeRole::stream, NodeRole::generate});
  drain("s1");
  EXPECT_EQ(plan().fillings, 0U) << "one tower encodes for one stream";
  ASSERT_EQ(first().stream, "s2");
  gpu("g");
  drain("s2");
  drain("v1");
  plan();
  EXPECT_EQ(first().stream, "g");
  EXPECT_EQ(first().former_stream, "s2");
  EXPECT_EQ(first().former_vision, "v1");
  input_.nodes.erase("v1");
  EXPECT_EQ(plan().fillings, 0U) << "its tower is gone";
  EXPECT_EQ(first().former_vision, "");
}

TEST_F(PlannerStreamsTest, AnotherTowerEncodesForTheNextStreamWhileTheFormersGoesOn) {
  start(20);
  for (const char* tower : {"v1", "v2"}) add(tower, {NodeRole::vision});
  add("s1", {NodeRole::stream, NodeRole::generate});
  plan();
  std::map<std::string, std::string> towers;
  for (const auto& [camera, entry] : cameras()) towers[camera] = entry.vision;
  add("s2", {NodeRole::stream, NodeRole::generate});
  drain("s1");
  EXPECT_EQ(plan().fillings, 20U);
  for (const auto& [camera, entry] : cameras()) {
    EXPECT_EQ(entry.stream, "s2") << camera;
    EXPECT_EQ(entry.former_stream, "s1") << camera;
    EXPECT_EQ(entry.former_vision, towers.at(camera)) << camera;
    EXPECT_NE(entry.vision, towers.at(camera)) << camera << ": one tower encodes for one stream";
    EXPECT_NE(entry.vision, "") << camera;
  }
  const auto moved = cameras();
  plan();
  EXPECT_EQ(cameras(), moved) << "it stays so until all is filled";
  fill_all();
  plan();
  for (const auto& [camera, entry] : cameras()) {
    EXPECT_EQ(entry.former_stream, "") << camera;
    EXPECT_EQ(entry.vision, moved.at(camera).vision) << camera;
  }
}

TEST_F(PlannerStreamsTest, ATowerThatDrainsEncodesUntilTheNextOneDoes) {
  start_apart(3);
  ASSERT_EQ(first().vision, "v1");
  add("v2", {NodeRole::vision});
  drain("v1");
  EXPECT_EQ(plan().fillings, 3U);
  for (const auto& [camera, entry] : cameras()) {
    EXPECT_EQ(entry.vision, "v2") << camera;
    EXPECT_EQ(entry.stream, "s1") << camera << ": it stays";
    EXPECT_EQ(entry.former_stream, "s1") << camera;
    EXPECT_EQ(entry.former_vision, "v1") << camera;
    EXPECT_GT(entry.stream_fence, entry.fence) << camera;
  }
  const auto moved = cameras();
  plan();
  EXPECT_EQ(cameras(), moved) << "until the next one encodes";
  fill_all();
  EXPECT_EQ(plan().fillings, 0U);
  EXPECT_EQ(first().former_vision, "");
  EXPECT_EQ(first().vision, "v2");
}

TEST_F(PlannerStreamsTest, ATowerThatIsToEncodeAndDrainsItselfIsFollowedByAThirdOne) {
  start_apart(1);
  add("v2", {NodeRole::vision});
  drain("v1");
  plan();
  const Fence fence = first().stream_fence;
  add("v3", {NodeRole::vision});
  drain("v2");
  EXPECT_EQ(plan().fillings, 1U);
  EXPECT_EQ(first().vision, "v3");
  EXPECT_EQ(first().former_vision, "v1");
  EXPECT_GT(first().stream_fence, fence);
  input_.filled["c"] = {fence};
  EXPECT_EQ(plan().fillings, 1U) << "it was said of the second one";
}

TEST_F(PlannerStreamsTest, TheFormersTowerIsLeftAloneWhenTheNextOneDrains) {
  start_apart(1);
  for (const char* tower : {"v2", "v3"}) add(tower, {NodeRole::vision});
  add("s2", {NodeRole::stream, NodeRole::generate});
  drain("s1");
  plan();
  ASSERT_EQ(first().former_vision, "v1");
  const std::string next = first().vision;
  drain(next);
  EXPECT_EQ(plan().fillings, 1U);
  EXPECT_EQ(first().former_vision, "v1") << "it still encodes for the former";
  EXPECT_EQ(first().vision, next == "v2" ? "v3" : "v2");
}

TEST_F(PlannerStreamsTest, ATowerThatIsGoneHasNoPartInWhatFollows) {
  start_apart(1);
  add("v2", {NodeRole::vision});
  input_.nodes.erase("v1");
  EXPECT_EQ(plan().fillings, 0U);
  EXPECT_EQ(first().vision, "v2");
  EXPECT_EQ(first().former_stream, "");
}

TEST_F(PlannerStreamsTest, AStreamThatMovesWhileItsTowerDoesLeavesBoth) {
  start_apart(1);
  add("v2", {NodeRole::vision});
  drain("v1");
  plan();
  const Fence fence = first().stream_fence;
  add("s2", {NodeRole::stream, NodeRole::generate});
  drain("s1");
  EXPECT_EQ(plan().fillings, 1U);
  EXPECT_EQ(first().stream, "s2");
  EXPECT_EQ(first().vision, "v2");
  EXPECT_EQ(first().former_stream, "s1");
  EXPECT_EQ(first().former_vision, "v1") << "the next one has not told that it encodes";
  EXPECT_GT(first().stream_fence, fence) << "another move";
}

TEST_F(PlannerStreamsTest, WhereNoOtherTowerHasRoomTheStreamBeginsAnewWithItsOwn) {
  start(4);
  add("v1", {NodeRole::vision}).streams = 4;
  add("v2", {NodeRole::vision}).streams = 0.5;
  add("s1", {NodeRole::stream, NodeRole::generate});
  plan();
  add("s2", {NodeRole::stream, NodeRole::generate});
  drain("s1");
  plan();
  for (const auto& [camera, entry] : cameras()) {
    EXPECT_EQ(entry.stream, "s2") << camera;
    EXPECT_NE(entry.vision, "") << camera << ": a tower that is busy is better than none";
    EXPECT_EQ(entry.former_stream.empty(), entry.former_vision.empty()) << camera;
  }
}

TEST_F(PlannerStreamsTest, OfAnotherOwnerNobodyHasComputedAnything) {
  start(1);
  gpu("old");
  plan();
  gpu("new");
  drain("old");
  plan();
  add("c2", {NodeRole::camera});
  input_.filled["c2"];
  drain("c");
  plan();
  const PlannedCamera& now = input_.plan.at("c2").cameras.begin()->second;
  EXPECT_EQ(now.stream, "new");
  EXPECT_EQ(now.former_stream, "") << "it has nothing of this one's";
  const PlannedCamera& before = input_.plan.at("c").cameras.begin()->second;
  EXPECT_EQ(before.hand_to, "c2");
  EXPECT_EQ(before.former_stream, "old") << "whose windows are told until the next owner's are full";
}

TEST_F(PlannerStreamsTest, AStreamThatMovesWithItsOwnerHasNoFormer) {
  start(1);
  gpu("old");
  plan();
  gpu("new");
  drain("old");
  add("c2", {NodeRole::camera});
  input_.filled["c2"];
  input_.nodes.erase("c");
  plan();
  const PlannedCamera& now = input_.plan.at("c2").cameras.begin()->second;
  EXPECT_EQ(now.stream, "new");
  EXPECT_EQ(now.former_stream, "");
}

TEST(PlanText, AnEarlierBuildsPlanHasNoFormer) {
  const NodePlan plan = parse_plan(R"({"fence":7,"cameras":{"a":{"fence":7,"origin_ms":0,"stream":"g"}}})");
  EXPECT_EQ(plan.cameras.at("a").former_stream, "");
  EXPECT_EQ(plan.cameras.at("a").stream_fence, 0U);
  EXPECT_EQ(print(plan).find("former"), std::string::npos);
}

}  // namespace
}  // namespace vigil::cluster
