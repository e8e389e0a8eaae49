// What is not given where nobody reaches it.
#include "cluster/planning/reachability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/planning/planned_fleet.h"

namespace vigil::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReachabilityTest : public testing::PlannedFleet {
 protected:
  void SetUp() override {
    add("c1", {NodeRole::camera});
    add("c2", {NodeRole::camera});
    gpu("g1");
    gpu("g2");
    for (int i = 0; i < 20; ++i) input_.cameras.push_back({"cam-" + std::to_string(100 + i)});
  }
  Planning plan() {
    const Planning planning = plan_fleet(input_, options_);
    for (const PlanChange& change : planning.changes) write(change);
    return planning;
  }
  const PlannedCamera& entry(const std::string& camera) const {
    return input_.plan.at(owner_of(input_.plan, camera)).cameras.at(camera);
  }
  /// How many cameras that node owns; and of how many of an owner's, or of all, one computes.
  int owned(const std::string& node) const {
    int count = 0;
    for (const WantedCamera& camera : input_.cameras) count += owner_of(input_.plan, camera.name) == node;
    return count;
  }
  int computed(const std::string& stream, const std::string& owner = "") const {
    int count = 0;
    for (const WantedCamera& camera : input_.cameras)
      count += entry(camera.name).stream == stream && entry(camera.name).vision == stream &&
               (owner.empty() || owner_of(input_.plan, camera.name) == owner);
    return count;
  }
  void filled() {
    for (const char* node : {"c1", "c2"}) input_.filled[node] = {};
  }
};

TEST_F(ReachabilityTest, ANodeThatCameInVainIsGivenNothing) {
  input_.nodes.at("c2").apart = input_.nodes.at("g2").apart = true;
  plan();
  EXPECT_EQ(owned("c1"), 20);
  EXPECT_EQ(computed("g1"), 20);
  // It has found a way, and gets its share.
  input_.nodes.at("c2").apart = input_.nodes.at("g2").apart = false;
  plan();
  EXPECT_GE(owned("c2"), 8);
  EXPECT_GE(computed("g2"), 8);
}

TEST_F(ReachabilityTest, WhatAPairCannotDoAnotherDoes) {
  filled();
  plan();
  ASSERT_GT(computed("g1", "c1"), 0);
  const int others = computed("g1", "c2");
  ASSERT_GT(others, 0);
  // One of the two says so.
  for (const auto& [says, other] : {std::pair("c1", "g1"), std::pair("g1", "c1")}) {
    const FleetPlan before = input_.plan;
    input_.nodes.at(says).unreachable = {other};
    plan();
    EXPECT_EQ(computed("g1", "c1"), 0) << says;
    for (const WantedCamera& camera : input_.cameras) {
      const std::string owner = owner_of(input_.plan, camera.name);
      EXPECT_EQ(owner, owner_of(before, camera.name)) << "owners stay";
      const PlannedCamera& was = before.at(owner).cameras.at(camera.name);
      if (owner != "c1" || was.stream != "g1") continue;
      EXPECT_THAT(entry(camera.name).why_stream, HasSubstr("there is no way to its node g1; "));
      EXPECT_EQ(entry(camera.name).former_stream, "") << "who cannot be reached does not go on";
    }
    plan();
    EXPECT_THAT(plan().changes, IsEmpty()) << "it comes to rest";
    EXPECT_EQ(computed("g1", "c1"), 0);
    input_.nodes.at(says).unreachable.clear();
    input_.plan = before;
  }
}

TEST_F(ReachabilityTest, WhatIsSoForAllMovesNothing) {
  plan();
  ASSERT_THAT(plan().changes, IsEmpty());
  for (auto& [name, node] : input_.nodes) node.apart = node.clock_off = true;
  EXPECT_THAT(plan().changes, IsEmpty());
  for (auto& [name, node] : input_.nodes) {
    node.apart = node.clock_off = false;
    if (node.roles.contains(NodeRole::camera)) node.unreachable = {"g1", "g2"};
  }
  EXPECT_THAT(plan().changes, IsEmpty());
}

TEST_F(ReachabilityTest, AnOwnerThatReachesNoNodeThatComputesGivesItsCamerasUp) {
  plan();
  ASSERT_GT(owned("c1"), 0);
  input_.nodes.at("c1").unreachable = {"g1", "g2"};
  const Planning planning = plan();
  EXPECT_EQ(owned("c1"), 0);
  EXPECT_GT(planning.handovers, 0U) << "it goes on until the others have them";
}

TEST_F(ReachabilityTest, AnOwnerThatReachesNoGatewayGivesItsCamerasUpIfAnotherReachesOne) {
  add("w1", {NodeRole::gateway});
  plan();
  input_.nodes.at("c1").unreachable = {"w1"};
  plan();
  EXPECT_EQ(owned("c1"), 0);
  add("w2", {NodeRole::gateway});
  plan();
  EXPECT_GE(owned("c1"), 8) << "one is enough";
  input_.nodes.at("c1").unreachable = input_.nodes.at("c2").unreachable = {"w1", "w2"};
  EXPECT_THAT(plan().changes, IsEmpty()) << "it is so for all";
}

TEST_F(ReachabilityTest, WhatIsEqualIsOnce) {
  for (const char* node : {"c1", "c2"}) input_.nodes.at(node).unreachable = {"g1"};
  Reachability reach(input_.nodes);
  const PlacementBars* const bars = reach.bars_for(NodeRole::stream, "c1");
  ASSERT_NE(bars, nullptr);
  EXPECT_THAT(bars->closed, ::testing::ElementsAre("g1"));
  EXPECT_EQ(reach.bars_for(NodeRole::stream, "c2"), bars);
  EXPECT_EQ(reach.bars_for(NodeRole::vision, "c2", "c1")->closed, bars->closed);
  EXPECT_EQ(reach.bars_for(NodeRole::camera, "c2"), nullptr);
  EXPECT_EQ(reach.bars_for(NodeRole::stream, "g2"), nullptr);
}

TEST_F(ReachabilityTest, WhereThereIsNoRoomElsewhereAStreamStays) {
  plan();
  const int before = computed("g1", "c1");
  ASSERT_GT(before, 0);
  input_.nodes.at("g2").streams = computed("g2");
  input_.nodes.at("g1").streams = 100;
  input_.nodes.at("c1").unreachable = {"g1"};
  EXPECT_THAT(plan().unplaced, IsEmpty());
  EXPECT_EQ(computed("g1", "c1"), before);
}

TEST_F(ReachabilityTest, AClockThatIsOffGetsNothingMoreAndKeepsWhatItHas) {
  plan();
  const int before = owned("c2");
  input_.nodes.at("c2").clock_off = true;
  EXPECT_THAT(plan().changes, IsEmpty());
  input_.cameras.push_back({"new-1"});
  input_.cameras.push_back({"new-2"});
  plan();
  EXPECT_EQ(owned("c2"), before);
  EXPECT_EQ(owner_of(input_.plan, "new-1"), "c1");
}

TEST_F(ReachabilityTest, ATowerIsOneThatOwnerAndStreamReach) {
  for (const char* node : {"g1", "g2"}) input_.nodes.at(node).roles = {NodeRole::stream};
  add("v1", {NodeRole::vision});
  add("v2", {NodeRole::vision});
  input_.nodes.at("c1").unreachable = {"v1"};
  input_.nodes.at("v2").unreachable = {"g2"};
  plan();
  for (const WantedCamera& camera : input_.cameras) {
    const PlannedCamera& own = entry(camera.name);
    if (own.stream == "g2" && owner_of(input_.plan, camera.name) == "c2") {
      EXPECT_EQ(own.vision, "v1");
    }
    if (own.stream == "g1" && owner_of(input_.plan, camera.name) == "c1") {
      EXPECT_EQ(own.vision, "v2");
    }
  }
}

TEST(NodeRecordOfTrouble, IsReadAsItWasPrintedAndLeftOutWhereThereIsNone) {
  NodeRecord record;
  record.name = "a";
  record.control = record.bulk = {"a", 7400};
  EXPECT_THAT(print(record), ::testing::Not(HasSubstr("unreachable")));
  EXPECT_EQ(parse_node(print(record)), record);
  record.unreachable = {"b", "c"};
  record.apart = record.clock_off = true;
  EXPECT_EQ(parse_node(print(record)), record);
}

}  // namespace
}  // namespace vigil::cluster
