// Who has which camera, and in what order plans change.
#include "cluster/membership/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

/// A fleet that does what it is planned to.
class PlannerTest : public ::testing::Test {
 protected:
  NodeRecord& add(const std::string& name, std::set<NodeRole> roles) {
    NodeRecord record;
    record.name = name;
    record.roles = std::move(roles);
    record.state = NodeState::ready;
    return input_.nodes[name] = record;
  }
  void camera_nodes(int count) {
    for (int i = 0; i < count; ++i) add("c" + std::to_string(i), {NodeRole::camera});
  }
  void gpu(const std::string& name) { add(name, {NodeRole::vision, NodeRole::stream, NodeRole::generate}); }
  void cameras(int count) {
    input_.cameras.clear();
    for (int i = 0; i < count; ++i) input_.cameras.push_back({"cam-" + std::to_string(1000 + i)});
  }

  /// Plans once, and writes it.
  Planning plan() {
    Planning planning = plan_fleet(input_, options_);
    for (const PlanChange& change : planning.changes) {
      if (change.plan) {
        input_.plan[change.node] = *change.plan;
      } else {
        input_.plan.erase(change.node);
      }
      for (const auto& [camera, owner] : owners_before_)
        EXPECT_NE(owner_of(input_.plan, camera), "") << camera << " has no owner for a while";
    }
    for (const WantedCamera& camera : input_.cameras)
      if (const std::string owner = owner_of(input_.plan, camera.name); !owner.empty())
        owners_before_[camera.name] = owner;
    return planning;
  }
  /// Every node has done what it was to.
  void settle() {
    for (auto& [name, node] : input_.nodes) {
      const auto plan = input_.plan.find(name);
      if (plan == input_.plan.end()) continue;
      for (const auto& [camera, entry] : plan->second.cameras) {
        if (entry.hand_to.empty()) node.settled = std::max(node.settled, entry.fence);
        node.highest_fence = std::max(node.highest_fence, entry.fence);
      }
    }
  }
  std::map<std::string, std::string> owners() const {
    std::map<std::string, std::string> all;
    for (const WantedCamera& camera : input_.cameras) all[camera.name] = owner_of(input_.plan, camera.name);
    return all;
  }
  const PlannedCamera& entry(const std::string& camera) const {
    return input_.plan.at(owner_of(input_.plan, camera)).cameras.at(camera);
  }

  PlanningInput input_{{}, {}, {}, base::Clock::WallTime(std::chrono::seconds(1'790'000'000))};
  PlannerOptions options_;
  std::map<std::string, std::string> owners_before_;
};

TEST_F(PlannerTest, GivesEveryCameraAnOwnerAndAStream) {
  camera_nodes(3);
  gpu("g0");
  gpu("g1");
  cameras(60);
  const Planning planning = plan();
  EXPECT_THAT(planning.unplaced, IsEmpty());
  std::map<std::string, int> owned;
  std::map<std::string, int> streams;
  std::set<Fence> fences;
  for (const auto& [camera, owner] : owners()) {
    ++owned[owner];
    ++streams[entry(camera).stream];
    EXPECT_EQ(entry(camera).vision, entry(camera).stream);
    EXPECT_EQ(entry(camera).generate, entry(camera).stream);
    EXPECT_EQ(entry(camera).origin_ms, 1'790'000'000'000);
    EXPECT_THAT(entry(camera).why, HasSubstr("choice"));
    fences.insert(entry(camera).fence);
  }
  EXPECT_THAT(owned, SizeIs(3));
  for (const auto& [node, count] : owned) EXPECT_NEAR(count, 20, 2) << node;
  for (const auto& [node, count] : streams) EXPECT_NEAR(count, 30, 2) << node;
  EXPECT_THAT(fences, SizeIs(60)) << "each its own";
  EXPECT_THAT(plan().changes, IsEmpty()) << "planned once, it stays";
}

TEST_F(PlannerTest, GivesTheCamerasOfANodeThatIsGoneToOthersWithHigherFences) {
  camera_nodes(3);
  gpu("g0");
  cameras(60);
  plan();
  settle();
  const auto before = owners();
  std::map<std::string, PlannedCamera> entries;
  Fence highest = 0;
  for (const auto& [camera, owner] : before) {
    entries[camera] = entry(camera);
    highest = std::max(highest, entry(camera).fence);
  }
  input_.nodes.erase("c1");
  const Planning planning = plan();
  EXPECT_EQ(planning.handovers, 0U);
  EXPECT_THAT(input_.plan, Not(Contains(Key("c1"))));
  EXPECT_EQ(planning.changes.back().node, "c1") << "it is taken from last";
  for (const auto& [camera, owner] : owners()) {
    if (before.at(camera) == "c1") {
      EXPECT_NE(owner, "c1");
      EXPECT_GT(entry(camera).fence, highest);
      EXPECT_THAT(entry(camera).why, HasSubstr("its node c1 is gone"));
      EXPECT_EQ(entry(camera).origin_ms, entries.at(camera).origin_ms) << "its time goes on";
      EXPECT_EQ(entry(camera).stream, entries.at(camera).stream) << "its stream stays where its keys are";
    } else {
      EXPECT_EQ(owner, before.at(camera));
      EXPECT_EQ(entry(camera), entries.at(camera));
    }
  }
}

TEST_F(PlannerTest, HandsOverWhatADrainingNodeHasBeforeItIsTaken) {
  camera_nodes(2);
  gpu("g0");
  cameras(20);
  plan();
  settle();
  input_.nodes.at("c0").state = NodeState::draining;
  const Planning planning = plan();
  const std::size_t had = planning.handovers;
  EXPECT_GT(had, 5U);
  EXPECT_THAT(input_.plan.at("c0").cameras, SizeIs(had));
  for (const auto& [camera, entry] : input_.plan.at("c0").cameras) {
    EXPECT_EQ(entry.hand_to, "c1");
    EXPECT_LT(entry.fence, input_.plan.at("c1").cameras.at(camera).fence);
  }
  EXPECT_THAT(plan().changes, IsEmpty()) << "until the new owner delivers, the old one goes on";
  settle();
  plan();
  EXPECT_THAT(input_.plan, Not(Contains(Key("c0"))));
  EXPECT_THAT(input_.plan.at("c1").cameras, SizeIs(20));
}

TEST_F(PlannerTest, TakesACameraFromAnOldOwnerAtOnceIfTheNewOneIsGoneAndGivesItOnce) {
  camera_nodes(2);
  cameras(10);
  plan();
  settle();
  input_.nodes.at("c0").state = NodeState::draining;
  plan();
  // Before it has settled, the new owner is gone, and the old one is wanted again.
  input_.nodes.erase("c1");
  input_.nodes.at("c0").state = NodeState::ready;
  const Planning planning = plan();
  EXPECT_EQ(planning.handovers, 0U);
  EXPECT_THAT(input_.plan, ElementsAre(Key("c0")));
  EXPECT_THAT(input_.plan.at("c0").cameras, SizeIs(10));
  for (const auto& [camera, entry] : input_.plan.at("c0").cameras) EXPECT_EQ(entry.hand_to, "");
}

TEST_F(PlannerTest, MovesFewToANewNodeAtATime) {
  camera_nodes(2);
  gpu("g0");
  cameras(200);
  plan();
  settle();
  options_.most_moves = 10;
  add("c2", {NodeRole::camera});
  std::size_t rounds = 0;
  while (!plan().changes.empty() && rounds < 100) {
    std::size_t under_way = 0;
    for (const auto& [node, plan] : input_.plan)
      for (const auto& [camera, entry] : plan.cameras) under_way += entry.hand_to.empty() ? 0U : 1U;
    EXPECT_LE(under_way, 10U);
    settle();
    ++rounds;
  }
  EXPECT_GT(rounds, 5U);
  EXPECT_NEAR(static_cast<double>(input_.plan.at("c2").cameras.size()), 200.0 / 3, 5);
}

TEST_F(PlannerTest, KeepsStreamsWhereTheyAreAndMovesThemFromANodeThatIsGone) {
  camera_nodes(2);
  gpu("g0");
  gpu("g1");
  cameras(40);
  plan();
  settle();
  const auto before = owners();
  input_.nodes.erase("g0");
  plan();
  EXPECT_EQ(owners(), before) << "no owner changes";
  for (const WantedCamera& camera : input_.cameras) EXPECT_EQ(entry(camera.name).stream, "g1");
}

TEST_F(PlannerTest, PutsTowerAndTextsElsewhereWhereTheStreamsNodeHasThemNot) {
  camera_nodes(1);
  add("s0", {NodeRole::stream});
  add("v0", {NodeRole::vision});
  add("v1", {NodeRole::vision});
  add("t0", {NodeRole::generate});
  cameras(20);
  plan();
  std::set<std::string> towers;
  for (const WantedCamera& camera : input_.cameras) {
    EXPECT_EQ(entry(camera.name).stream, "s0");
    EXPECT_EQ(entry(camera.name).generate, "t0");
    towers.insert(entry(camera.name).vision);
  }
  EXPECT_THAT(towers, ElementsAre("v0", "v1"));
}

TEST_F(PlannerTest, SaysWhichCamerasHaveNoPlaceAndWhy) {
  add("c0", {NodeRole::camera}).cameras = 5;
  cameras(8);
  const Planning planning = plan();
  EXPECT_THAT(input_.plan.at("c0").cameras, SizeIs(5));
  std::size_t without_owner = 0;
  std::size_t without_stream = 0;
  for (const auto& [camera, why] : planning.unplaced)
    ++(owner_of(input_.plan, camera).empty() ? without_owner : without_stream);
  EXPECT_EQ(without_owner, 3U);
  EXPECT_EQ(without_stream, 5U) << "nobody streams";
  add("c1", {NodeRole::camera});
  gpu("g0");
  EXPECT_THAT(plan().unplaced, IsEmpty());
}

TEST_F(PlannerTest, LetsGoOfCamerasThatAreNotWantedAnyMore) {
  camera_nodes(1);
  gpu("g0");
  cameras(4);
  plan();
  owners_before_.clear();
  cameras(2);
  plan();
  EXPECT_THAT(input_.plan.at("c0").cameras, ElementsAre(Key("cam-1000"), Key("cam-1001")));
}

TEST_F(PlannerTest, GivesNothingToANodeThatIsStillJoining) {
  camera_nodes(1);
  add("c1", {NodeRole::camera}).state = NodeState::joining;
  cameras(20);
  plan();
  EXPECT_THAT(input_.plan.at("c0").cameras, SizeIs(20));
}

TEST_F(PlannerTest, RaisesEveryFenceOfARegistryThatWasSetBack) {
  camera_nodes(2);
  gpu("g0");
  cameras(10);
  plan();
  settle();
  const FleetPlan backup = input_.plan;
  for (int i = 0; i < 3; ++i) {
    input_.nodes.at("c0").state = i % 2 == 0 ? NodeState::draining : NodeState::ready;
    plan();
    settle();
    plan();
  }
  Fence highest = 0;
  for (const auto& [name, node] : input_.nodes) highest = std::max(highest, node.highest_fence);
  input_.plan = backup;
  for (auto& [name, node] : input_.nodes) node.state = NodeState::ready;
  plan();
  for (const WantedCamera& camera : input_.cameras) EXPECT_GT(entry(camera.name).fence, highest);
  for (const auto& [node, plan] : input_.plan) EXPECT_GT(plan.fence, highest);
}

TEST_F(PlannerTest, RemembersHowFarFencesHaveComeWhereAllNodesWereGone) {
  camera_nodes(2);
  cameras(4);
  plan();
  Fence highest = 0;
  for (const auto& [node, each] : input_.plan) highest = std::max(highest, each.fence);
  ASSERT_GT(highest, 0U);
  // A node that reads no cameras plans meanwhile; those that come were started anew.
  input_.nodes.clear();
  gpu("g");
  owners_before_.clear();
  plan();
  EXPECT_THAT(input_.plan, SizeIs(1));
  EXPECT_THAT(plan().changes, IsEmpty());
  camera_nodes(2);
  plan();
  for (const auto& camera : input_.cameras) EXPECT_GT(entry(camera.name).fence, highest);
}

TEST(NodePlan, IsReadBackAsItWas) {
  NodePlan plan;
  plan.fence = 1'000'000'000'000;
  plan.cameras["gate"] = {17,      "v", "s", "g", 1'790'000'000'123, "c2", "fewer frames", "first choice",
                          "second"};
  plan.cameras["yard"] = {18, "", "", "", 1, "", "", "", ""};
  EXPECT_EQ(parse_plan(print(plan)), plan);
  for (const char* wrong : {"", "{}", "[]", R"({"fence":1})", R"({"fence":1,"cameras":{"a":{}}})"})
    EXPECT_THROW(parse_plan(wrong), std::runtime_error) << wrong;
}

}  // namespace
}  // namespace vigil::cluster
