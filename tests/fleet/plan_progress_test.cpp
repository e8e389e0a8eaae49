#include "fleet/node/plan_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using cluster::NodeRole;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

cluster::PlannedCamera camera(cluster::Fence fence, const std::string& hand_to = "") {
  cluster::PlannedCamera camera;
  camera.fence = fence;
  camera.vision = camera.stream = "g";
  camera.hand_to = hand_to;
  return camera;
}

cluster::NodePlan plan() {
  cluster::NodePlan plan;
  plan.cameras = {{"gate", camera(3)}, {"hall", camera(5)}, {"yard", camera(4, "c2")}};
  return plan;
}

cluster::NodeRecord node(const std::string& name, std::set<NodeRole> roles) {
  cluster::NodeRecord record;
  record.name = name;
  record.roles = std::move(roles);
  record.state = cluster::NodeState::ready;
  return record;
}

TEST(SettledOf, GoesUpToTheFirstThatWasNotTriedAndLeavesOutWhatIsHandedOver) {
  EXPECT_EQ(settled_of(plan(), [](const std::string&) { return true; }), 5U);
  EXPECT_EQ(settled_of(plan(), [](const std::string& name) { return name == "gate"; }), 3U)
      << "yard is another's";
  EXPECT_EQ(settled_of(plan(), [](const std::string& name) { return name == "hall"; }), 0U);
}

TEST(FilledOf, AreStreamsThatHaveMovedAndAreFull) {
  cluster::NodePlan moved = plan();
  moved.cameras["gate"].former_stream = "old";
  moved.cameras["gate"].stream_fence = 11;
  moved.cameras["hall"].former_stream = "old";
  moved.cameras["hall"].stream_fence = 12;
  moved.cameras["yard"].former_stream = "old";
  moved.cameras["yard"].stream_fence = 13;
  const auto all = [](const std::string&, const cluster::PlannedCamera&) { return true; };
  EXPECT_THAT(filled_of(plan(), all), IsEmpty()) << "none has moved";
  EXPECT_THAT(filled_of(moved, all), ElementsAre(11, 12)) << "yard's next owner tells of it";
  EXPECT_THAT(filled_of(moved, [](const std::string& name, const auto&) { return name == "hall"; }),
              ElementsAre(12));
  EXPECT_THAT(filled_of(moved, [](const auto&, const auto& entry) { return entry.stream_fence == 11; }),
              ElementsAre(11));
}

TEST(IsDrained, OnceNothingIsLeftThatAnotherNodeCouldDo) {
  const cluster::NodeRecord self = node("c1", {NodeRole::camera});
  std::map<std::string, cluster::NodeRecord> nodes{{"c1", self}, {"g", node("g", {NodeRole::stream})}};
  EXPECT_TRUE(is_drained(self, plan(), nullptr, nodes, false)) << "nobody else reads cameras";
  nodes["c2"] = node("c2", {NodeRole::camera});
  EXPECT_FALSE(is_drained(self, plan(), nullptr, nodes, false));
  EXPECT_TRUE(is_drained(self, {}, nullptr, nodes, false));
}

TEST(IsDrained, ANodeThatComputesHasToKnowTheFleetsPlans) {
  for (const NodeRole role : {NodeRole::vision, NodeRole::stream}) {
    const cluster::NodeRecord self = node("g", {role});
    std::map<std::string, cluster::NodeRecord> nodes{{"g", self}, {"c1", node("c1", {NodeRole::camera})}};
    cluster::FleetPlan fleet{{"c1", plan()}};
    EXPECT_TRUE(is_drained(self, {}, &fleet, nodes, true)) << "it is the only one";
    nodes["g2"] = node("g2", {role});
    EXPECT_FALSE(is_drained(self, {}, nullptr, nodes, true)) << "not known";
    EXPECT_FALSE(is_drained(self, {}, &fleet, nodes, true));
    for (auto& [name, entry] : fleet["c1"].cameras) {
      entry.vision = entry.stream = "g2";
      entry.former_stream = "g";
    }
    EXPECT_FALSE(is_drained(self, {}, &fleet, nodes, true)) << "it answers until others are full";
    for (auto& [name, entry] : fleet["c1"].cameras) entry.former_stream.clear();
    EXPECT_TRUE(is_drained(self, {}, &fleet, nodes, true));
  }
}

}  // namespace
}  // namespace vigil::fleet
