// Who has which camera, and in what order plans change.
#include "cluster/planning/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/planning/planned_fleet.h"

namespace vigil::cluster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

class PlannerTest : public testing::PlannedFleet {
 protected:
  void camera_nodes(int count) {
    for (int i = 0; i < count; ++i) add("c" + std::to_string(i), {NodeRole::camera});
  }
  void cameras(int count) {
    input_.cameras.clear();
    for (int i = 0; i < count; ++i) input_.cameras.push_back({"cam-" + std::to_string(1000 + i)});
  }

  /// Plans once, and writes it.
  Planning plan() {
    Planning planning = plan_fleet(input_, options_);
    for (const PlanChange& change : planning.changes) {
      write(change);
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
        if (entry.hand_to.empty()) input_.settled[name] = std::max(input_.settled[name], entry.fence);
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

TEST_F(PlannerTest, KeepsWhatIsKnownOfCamerasThatNobodyCanHave) {
  camera_nodes(2);
  gpu("g0");
  cameras(20);
  for (auto& [name, node] : input_.nodes) node.incarnation = "first";
  plan();
  settle();
  const FleetPlan before = input_.plan;
  const NodeRecord c0 = input_.nodes.at("c0");
  // As after an etcd that could not be reached for longer than leases last: who computes comes back first.
  input_.nodes.erase("c0");
  input_.nodes.erase("c1");
  const Planning planning = plan();
  EXPECT_THAT(planning.changes, IsEmpty());
  EXPECT_THAT(planning.unplaced, SizeIs(20));
  EXPECT_EQ(input_.plan, before);
  // All were started again, and the first one is not ready yet.
  NodeRecord& again = input_.nodes["c0"] = c0;
  again.incarnation = "second";
  again.state = NodeState::joining;
  EXPECT_THAT(plan().changes, IsEmpty());
  EXPECT_EQ(input_.plan, before);
  input_.wall += std::chrono::hours(1);
  again = c0;
  plan();
  EXPECT_THAT(input_.plan, ElementsAre(Key("c0")));
  for (const auto& [node, had] : before)
    for (const auto& [camera, entry] : had.cameras) {
      const PlannedCamera& now = input_.plan.at("c0").cameras.at(camera);
      EXPECT_EQ(now.origin_ms, entry.origin_ms) << "its time goes on";
      EXPECT_EQ(now.fence == entry.fence, node == "c0");
    }
}

TEST_F(PlannerTest, TakesANodeThatWasStartedAgainForAnotherOwner) {
  camera_nodes(2);
  gpu("g0");
  cameras(20);
  for (auto& [name, node] : input_.nodes) node.incarnation = "first";
  plan();
  settle();
  const FleetPlan before = input_.plan;
  EXPECT_EQ(before.at("c0").incarnation, "first");
  input_.nodes.at("c1").incarnation = "second";
  input_.settled["c1"] = 0;
  EXPECT_EQ(plan().handovers, 0U) << "the run before is in nobody's way";
  EXPECT_EQ(input_.plan.at("c0"), before.at("c0"));
  EXPECT_TRUE(input_.plan.at("c1").is_for("second"));
  EXPECT_FALSE(input_.plan.at("c1").is_for("first"));
  EXPECT_THAT(input_.plan.at("c1").cameras, SizeIs(before.at("c1").cameras.size()));
  for (const auto& [camera, entry] : input_.plan.at("c1").cameras) {
    EXPECT_GT(entry.fence, before.at("c1").fence);
    EXPECT_EQ(entry.stream, before.at("c1").cameras.at(camera).stream);
    EXPECT_EQ(entry.origin_ms, before.at("c1").cameras.at(camera).origin_ms);
  }
  EXPECT_THAT(plan().changes, IsEmpty()) << "once";
}

TEST_F(PlannerTest, WaitsForNoFormerOwnerThatWasStartedAgain) {
  camera_nodes(2);
  cameras(20);
  for (auto& [name, node] : input_.nodes) node.incarnation = "first";
  plan();
  settle();
  input_.nodes.at("c0").state = NodeState::draining;
  EXPECT_GT(plan().handovers, 5U);
  input_.nodes.at("c0").incarnation = "second";
  EXPECT_EQ(plan().handovers, 0U);
  EXPECT_THAT(input_.plan, ElementsAre(Key("c1")));
}

TEST_F(PlannerTest, LeavesFencesAsTheyAreWhereAPlanDoesNotSayForWhichRunItIs) {
  camera_nodes(1);
  cameras(5);
  plan();
  settle();
  const FleetPlan before = input_.plan;
  input_.nodes.at("c0").incarnation = "first";
  plan();
  EXPECT_EQ(input_.plan.at("c0").cameras, before.at("c0").cameras);
  EXPECT_EQ(input_.plan.at("c0").incarnation, "first");
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

TEST_F(PlannerTest, WithoutANodeForTextsCamerasHaveAllThatTheyNeed) {
  camera_nodes(1);
  add("s0", {NodeRole::stream});
  add("v0", {NodeRole::vision});
  cameras(5);
  EXPECT_THAT(plan().unplaced, IsEmpty());
  EXPECT_EQ(entry(input_.cameras.front().name).generate, "") << "the stream's node does them";
  // One that is missing for the tower is told all the same.
  settle();
  input_.nodes.erase("v0");
  EXPECT_THAT(plan().unplaced, SizeIs(5));
}

class StagesApart : public PlannerTest {
 protected:
  StagesApart() {
    camera_nodes(1);
    add("s0", {NodeRole::stream, NodeRole::generate});
    add("s1", {NodeRole::stream, NodeRole::generate});
    add("v0", {NodeRole::vision});
    add("v1", {NodeRole::vision});
    cameras(40);
    plan();
    settle();
  }
  /// Cameras by the node that this field names.
  std::map<std::string, int> at(std::string PlannedCamera::*field) const {
    std::map<std::string, int> counts;
    for (const WantedCamera& camera : input_.cameras) ++counts[entry(camera.name).*field];
    return counts;
  }
};

TEST_F(StagesApart, TowersAreSharedOutByWeight) {
  EXPECT_NEAR(at(&PlannedCamera::vision).at("v0"), 20, 2);
  EXPECT_NEAR(at(&PlannedCamera::stream).at("s0"), 20, 2);
  EXPECT_THAT(entry("cam-1000").why_vision, HasSubstr("choice"));
  EXPECT_THAT(plan().changes, IsEmpty()) << "planned once, it stays";
  input_.nodes.at("v0").weight = 3;
  options_.most_moves = 1000;
  plan();
  EXPECT_NEAR(at(&PlannedCamera::vision).at("v0"), 30, 2);
}

TEST_F(StagesApart, ATowerThatIsGoneIsReplacedAndNoStreamMoves) {
  std::map<std::string, PlannedCamera> before;
  for (const WantedCamera& camera : input_.cameras) before[camera.name] = entry(camera.name);
  input_.nodes.erase("v0");
  plan();
  for (const WantedCamera& camera : input_.cameras) {
    const PlannedCamera& now = entry(camera.name);
    EXPECT_EQ(now.vision, "v1");
    EXPECT_EQ(now.stream, before.at(camera.name).stream);
    EXPECT_EQ(now.fence, before.at(camera.name).fence);
    if (before.at(camera.name).vision == "v0") {
      EXPECT_THAT(now.why_vision, HasSubstr("its node v0 is gone"));
    }
  }
  // Those that come back get a few at a time, and those that stay do not move.
  options_.most_moves = 4;
  add("v0", {NodeRole::vision});
  plan();
  EXPECT_EQ(at(&PlannedCamera::vision).at("v0"), 4);
}

TEST_F(StagesApart, AStreamThatMovesLeavesItsTowerWhereItIs) {
  std::map<std::string, std::string> towers;
  for (const WantedCamera& camera : input_.cameras) towers[camera.name] = entry(camera.name).vision;
  input_.nodes.erase("s0");
  plan();
  for (const WantedCamera& camera : input_.cameras) {
    EXPECT_EQ(entry(camera.name).stream, "s1");
    EXPECT_EQ(entry(camera.name).vision, towers.at(camera.name));
  }
}

TEST_F(StagesApart, AStreamsOwnNodeComesFirstIfItHasATower) {
  input_.nodes.at("s0").roles.insert(NodeRole::vision);
  plan();
  int own = 0;
  for (const WantedCamera& camera : input_.cameras) {
    const PlannedCamera& now = entry(camera.name);
    if (now.stream != "s0") {
      EXPECT_NE(now.vision, "s1");
      continue;
    }
    ++own;
    EXPECT_EQ(now.vision, "s0");
    EXPECT_EQ(now.why_vision, "");
  }
  EXPECT_GT(own, 15);
}

TEST_F(StagesApart, TowersTakeTheRoomThatStreamsLeave) {
  // Twenty streams, and half of the load of each of the other twenty.
  input_.nodes.erase("v0");
  input_.nodes.erase("v1");
  NodeRecord& both = input_.nodes.at("s0");
  both.roles.insert(NodeRole::vision);
  const int streams = at(&PlannedCamera::stream).at("s0");
  both.streams = streams + 3;
  for (WantedCamera& camera : input_.cameras) camera.priority = camera.name < "cam-1020" ? 1 : 0;
  Planning planning = plan();
  const std::size_t refused = planning.unplaced.size();
  EXPECT_GE(refused, static_cast<std::size_t>(40 - streams - 6) / 2);
  EXPECT_LT(refused, 20U) << "those that are nothing to the towers make room, too";
  for (const auto& [camera, why] : planning.unplaced) {
    EXPECT_THAT(why, HasSubstr("the fleet has room for"));
    EXPECT_GE(camera, "cam-1020") << "in the declared order";
    EXPECT_EQ(entry(camera).rung, kRefused);
    EXPECT_EQ(entry(camera).vision, "");
  }
  for (const WantedCamera& camera : input_.cameras)
    if (entry(camera.name).rung != kRefused) {
      EXPECT_NE(entry(camera.name).vision, "") << camera.name;
    }
  settle();
  EXPECT_THAT(plan().changes, IsEmpty()) << "and it stays so";
}

TEST_F(StagesApart, TowersThatAreFullLowerCamerasInTheDeclaredOrder) {
  const auto half = std::make_shared<const std::vector<StreamRung>>(
      std::vector<StreamRung>{{.name = "fewer frames", .stream_load = 0.5, .vision_load = 0.25}});
  for (WantedCamera& camera : input_.cameras) {
    camera.less = half;
    camera.priority = camera.name < "cam-1010" ? 1 : 0;
  }
  // All take 20 of it, and there is 16.
  input_.nodes.at("v0").streams = input_.nodes.at("v1").streams = 8;
  const Planning planning = plan();
  EXPECT_THAT(planning.unplaced, IsEmpty());
  int lowered = 0;
  for (const WantedCamera& camera : input_.cameras) {
    EXPECT_NE(entry(camera.name).vision, "") << camera.name;
    if (entry(camera.name).rung.empty()) continue;
    ++lowered;
    EXPECT_GE(camera.name, "cam-1010");
  }
  EXPECT_GE(lowered, 16) << "of each a quarter is less";
  EXPECT_LE(lowered, 20);
  settle();
  EXPECT_THAT(plan().changes, IsEmpty());
  // Without a bound.
  input_.nodes.at("v0").streams = 0;
  plan();
  settle();
  for (const WantedCamera& camera : input_.cameras) EXPECT_EQ(entry(camera.name).rung, "");
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

TEST_F(PlannerTest, GivesNoNodeMoreThanItsPlanHasRoomFor) {
  camera_nodes(1);
  gpu("g0");
  cameras(2500);
  const Planning planning = plan();
  EXPECT_THAT(planning.unplaced, SizeIs(500));
  EXPECT_THAT(input_.plan.at("c0").cameras, SizeIs(2000));
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
  // Nothing is to be watched for a while; all nodes are started anew.
  input_.nodes.clear();
  gpu("g");
  cameras(0);
  owners_before_.clear();
  plan();
  EXPECT_THAT(input_.plan, SizeIs(1));
  EXPECT_THAT(plan().changes, IsEmpty());
  camera_nodes(2);
  cameras(4);
  plan();
  for (const auto& camera : input_.cameras) EXPECT_GT(entry(camera.name).fence, highest);
}

}  // namespace
}  // namespace vigil::cluster
