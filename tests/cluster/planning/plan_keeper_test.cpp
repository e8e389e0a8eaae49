// Nodes that plan, and that have what is planned, over a registry in memory, in virtual time.
#include "cluster/planning/plan_keeper.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/planning/planning_nodes.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Node = testing::PlanningNode;
using ::testing::SizeIs;
using PlanKeeperTest = testing::PlanningNodes;

TEST_F(PlanKeeperTest, EveryNodeHasWhatIsPlannedForIt) {
  start_planner(60);
  for (const char* name : {"a", "b", "c"}) start(name, {NodeRole::camera});
  run(2s);
  EXPECT_THAT(counts(), SizeIs(60));
  EXPECT_THAT(counts(), Each(1));
}

TEST_F(PlanKeeperTest, AFleetThatStartsIsPlannedWhenNoMoreNodesCome) {
  Node& planner = start_planner(10'000);
  for (int i = 0; i < 40; ++i) {
    start("c" + std::to_string(100 + i), {NodeRole::camera});
    run(100ms);
  }
  EXPECT_THAT(counts(), IsEmpty()) << "the first would have all";
  run(5s);
  EXPECT_THAT(counts(), SizeIs(10'000));
  EXPECT_THAT(counts(), Each(1));
  EXPECT_LE(planner.plannings, 3);
  for (const Node& node : nodes_) EXPECT_EQ(node.changes, &node == &planner ? 0 : 1) << "nothing was moved";
}

TEST_F(PlanKeeperTest, NodesThatComeAllTheTimeDoNotKeepAFleetFromStarting) {
  start_planner(10'000);
  for (int i = 0; i < 40; ++i) {
    start("c" + std::to_string(100 + i), {NodeRole::camera});
    run(1s);
  }
  EXPECT_THAT(counts(), SizeIs(10'000));
}

TEST_F(PlanKeeperTest, AFewCamerasWaitForNobody) {
  start_planner(5);
  start("a", {NodeRole::camera});
  run(300ms);
  EXPECT_THAT(counts(), SizeIs(5));
}

TEST_F(PlanKeeperTest, AFleetThatWasAllGoneWaitsForWhoeverKnowsHigherFences) {
  start_planner(5);
  start("a", {NodeRole::camera});
  run(300ms);
  ASSERT_THAT(counts(), SizeIs(5));
  nodes_.clear();
  run(4s);
  // The registry is that of a backup, and a gateway has on its disk what was given later.
  Node& planner = start("p", {NodeRole::stream}, "2");
  planner.member->stand_for_planner(true);
  want(planner, 5);
  Node& again = start("a", {NodeRole::camera}, "2");
  run(500ms);
  EXPECT_THAT(counts(), IsEmpty());
  start("g", {NodeRole::gateway}).member->saw(1000);
  run(2s);
  ASSERT_THAT(counts(), SizeIs(5));
  for (const auto& [camera, entry] : again.keeper->own().cameras) EXPECT_GT(entry.fence, 1000U);
}

TEST_F(PlanKeeperTest, WhoPlannedBeforeTheRegistryWasSetBackPlansAgain) {
  Node& planner = start_planner(5);
  Node& a = start("a", {NodeRole::camera});
  run(300ms);
  const MemoryStore::Backup backup = store_->backup();
  for (std::size_t cameras = 6; cameras < 30; ++cameras) {
    want(planner, cameras);
    run(100ms);
  }
  ASSERT_THAT(counts(), SizeIs(29));
  store_->restore(backup, 1);
  run(2s);
  ASSERT_TRUE(planner.member->is_planner());
  kill(a);
  start("b", {NodeRole::camera});
  run(10s);
  EXPECT_THAT(counts(), SizeIs(29)) << planner.log;
  EXPECT_THAT(counts(), Each(1));
}

TEST_F(PlanKeeperTest, ACameraThatIsRefusedByItsFenceGetsANewOneAlone) {
  start_planner(3);
  Node& a = start("a", {NodeRole::camera});
  run(1s);
  const auto before = a.keeper->own().cameras;
  ASSERT_THAT(before, SizeIs(3));
  const Fence refused = before.begin()->second.fence;
  // One that the plan is above by now, so that nothing of it looks set back.
  a.member->refuse({refused, refused + 1});
  run(1s);
  const auto now = a.keeper->own().cameras;
  for (const auto& [camera, entry] : before) {
    const Fence fence = now.at(camera).fence;
    if (entry.fence == refused || entry.fence == refused + 1) {
      EXPECT_GT(fence, before.rbegin()->second.fence) << camera;
    } else {
      EXPECT_EQ(fence, entry.fence) << camera;
    }
  }
  a.member->refuse({now.begin()->second.fence, 5000});
  run(1s);
  EXPECT_GT(a.keeper->own().cameras.begin()->second.fence, 5000U);
  const Fence last = a.keeper->own().cameras.begin()->second.fence;
  a.member->refuse({});
  run(2s);
  EXPECT_EQ(a.keeper->own().cameras.begin()->second.fence, last) << "once is enough";
}

TEST_F(PlanKeeperTest, PlansTogetherForWhatComesTogether) {
  Node& planner = start_planner(10'000);
  for (int i = 0; i < 20; ++i) start("c" + std::to_string(100 + i), {NodeRole::camera});
  run(6s);
  ASSERT_THAT(counts(), SizeIs(10'000));
  const int before = planner.plannings;
  for (std::size_t i = 1; i <= 40; ++i) {
    want(planner, 10'000 + i);
    run(50ms);
  }
  run(1s);
  EXPECT_THAT(counts(), SizeIs(10'040));
  // For 10,000 cameras, every 200 ms.
  EXPECT_GE(planner.plannings - before, 5);
  EXPECT_LE(planner.plannings - before, 14);
}

TEST_F(PlanKeeperTest, WritesWhatItPlannedOnceInAsManyTransactionsAsItTakes) {
  for (int i = 0; i < 60; ++i) start("c" + std::to_string(100 + i), {NodeRole::camera});
  run(1s);
  Node& planner = start("p", {NodeRole::stream});
  planner.member->stand_for_planner(true);
  run(1s);
  const Revision before = store_->header().revision;
  want(planner, 600);
  run(2s);
  EXPECT_THAT(counts(), SizeIs(600));
  EXPECT_THAT(counts(), Each(1));
  EXPECT_EQ(planner.plannings, 2) << "and one that finds nothing to do";
  EXPECT_EQ(store_->header().revision - before, 4) << "sixteen plans each";
}

TEST_F(PlanKeeperTest, AFormerOwnerGoesOnUntilTheNewOneHasSettled) {
  start_planner(10);
  Node& a = start("a", {NodeRole::camera});
  run(1s);
  ASSERT_THAT(a.keeper->own().cameras, SizeIs(10));
  Node& b = start("b", {NodeRole::camera});
  a.member->alter([](NodeRecord& record) { record.state = NodeState::draining; });
  run(2s);
  ASSERT_THAT(b.keeper->own().cameras, SizeIs(10));
  ASSERT_THAT(a.keeper->own().cameras, SizeIs(10));
  EXPECT_EQ(a.keeper->own().cameras.begin()->second.hand_to, "b");
  Fence highest = 0;
  for (const auto& [camera, entry] : b.keeper->own().cameras) highest = std::max(highest, entry.fence);
  b.member->settle(highest - 1);
  run(2s);
  EXPECT_THAT(a.keeper->own().cameras, SizeIs(1));
  b.member->settle(highest);
  run(2s);
  EXPECT_THAT(a.keeper->own().cameras, IsEmpty());
  EXPECT_THAT(counts(), Each(1));
}

TEST_F(PlanKeeperTest, AStreamHasAFormerUntilItsCamerasNodeTellsThatItIsFull) {
  Node& planner = start_planner(2);
  Node& a = start("a", {NodeRole::camera});
  a.member->fill({});
  Node& old = start("old", {NodeRole::vision, NodeRole::stream});
  planner.member->alter([](NodeRecord& record) { record.roles = {NodeRole::gateway}; });
  run(3s);
  start("new", {NodeRole::vision, NodeRole::stream});
  old.member->alter([](NodeRecord& record) { record.state = NodeState::draining; });
  run(2s);
  const auto formers = [&] {
    std::vector<std::string> all;
    for (const auto& [camera, entry] : a.keeper->own().cameras)
      all.push_back(entry.former_stream + '>' + entry.stream);
    return all;
  };
  EXPECT_THAT(formers(), ElementsAre("old>new", "old>new"));
  old.keeper->follow();
  EXPECT_FALSE(old.keeper->knows_fleet());
  run(1s);
  EXPECT_TRUE(old.keeper->knows_fleet());
  EXPECT_THAT(old.keeper->fleet(), SizeIs(1));
  a.member->fill({a.keeper->own().cameras.begin()->second.stream_fence});
  run(2s);
  EXPECT_THAT(formers(), ElementsAre(">new", "old>new"));
  a.member->fill({a.keeper->own().cameras.rbegin()->second.stream_fence});
  run(2s);
  EXPECT_THAT(formers(), ElementsAre(">new", ">new"));
}

TEST_F(PlanKeeperTest, WhatANodeHadSettledBeforeItWasStartedAgainCountsNoMore) {
  start_planner(10);
  Node& a = start("a", {NodeRole::camera});
  run(1s);
  Node& b = start("b", {NodeRole::camera});
  run(1s);
  b.member->settle(1'000'000);
  run(1s);
  const std::size_t left = a.keeper->own().cameras.size();
  ASSERT_GT(left, 0U);
  kill(b);
  Node& again = start("b", {NodeRole::camera}, "2");
  a.member->alter([](NodeRecord& record) { record.state = NodeState::draining; });
  run(2s);
  EXPECT_THAT(a.keeper->own().cameras, SizeIs(left))
      << "the lease of the first b holds, and with it its word";
  EXPECT_THAT(again.keeper->own().cameras, SizeIs(10));
}

TEST_F(PlanKeeperTest, NodesSayWhatTheyHaveSeenOnlyIfAPlanContradictsThem) {
  Node& planner = start_planner(10);
  Node& a = start("a", {NodeRole::camera});
  run(2s);
  const Fence seen = a.member->record().highest_fence;
  ASSERT_GE(seen, 10U);
  EXPECT_EQ(planner.member->nodes().at("a").highest_fence, 0U) << "every other node would be told";
  // A plan of long ago, as after a restored backup that nobody noticed.
  NodePlan old = a.keeper->own();
  old.fence = 1;
  for (auto& [camera, entry] : old.cameras) entry.fence = 1;
  store_->commit({.conditions = {}, .changes = {RegistryPut{"/vigil/city/plan/a", print(old)}}});
  run(2s);
  EXPECT_EQ(planner.member->nodes().at("a").highest_fence, seen);
  EXPECT_GT(a.keeper->own().fence, seen) << "and is given its cameras anew";
  for (const auto& [camera, entry] : a.keeper->own().cameras) EXPECT_GT(entry.fence, seen);
}

TEST_F(PlanKeeperTest, OneThatIsCutOffWritesNothingMore) {
  Node& planner = start_planner(100);
  Node& other = start("q", {NodeRole::stream});
  for (int i = 0; i < 60; ++i) start("c" + std::to_string(100 + i), {NodeRole::camera});
  run(2s);
  other.member->stand_for_planner(true);
  want(other, 100);
  ASSERT_TRUE(planner.member->is_planner());
  planner.cut = true;
  run(4s);
  ASSERT_TRUE(other.member->is_planner());
  want(planner, 200);
  planner.cut = false;
  run(5s);
  EXPECT_THAT(counts(), SizeIs(100)) << "it does not plan any more";
}

TEST_F(PlanKeeperTest, SaysWhyAPlanIsNotWritten) {
  Node& planner = start_planner(0);
  start("a", {NodeRole::camera});
  std::vector<WantedCamera> wanted;
  for (int i = 0; i < 1000; ++i) wanted.push_back({std::string(1200, 'x') + std::to_string(i)});
  planner.keeper->want(wanted);
  run(4s);
  EXPECT_THAT(planner.log, HasSubstr("the plan is not written: registry: a transaction of "));
}

TEST_F(PlanKeeperTest, PlansNothingAnewWhenAConfigurationIsTaken) {
  Node& planner = start_planner(10);
  for (const char* name : {"a", "b"}) start(name, {NodeRole::camera});
  run(2s);
  ASSERT_THAT(counts(), SizeIs(10));
  const int before = planner.plannings;
  for (Node& node : nodes_)
    node.member->alter([](NodeRecord& record) {
      record.config = record.config_seen = "c0ffee";
      record.config_version = 7;
    });
  run(2s);
  ASSERT_EQ(planner.member->nodes().at("a").config_version, 7U);
  EXPECT_EQ(planner.plannings, before);
  start("c", {NodeRole::camera});
  run(2s);
  EXPECT_GT(planner.plannings, before) << "one that comes is another thing";
}

TEST_F(PlanKeeperTest, AfterACutFromTheRegistryThoseThatWereThereAreWaitedFor) {
  Node& planner = start_planner(40);
  Node& c1 = start("c1", {NodeRole::camera});
  Node& c2 = start("c2", {NodeRole::camera});
  run(8s);
  ASSERT_GT(c1.keeper->own().cameras.size(), 10U);
  ASSERT_GT(c2.keeper->own().cameras.size(), 10U);
  const NodePlan before = c2.keeper->own();
  for (Node& node : nodes_) node.cut = true;
  run(6s);
  planner.cut = c1.cut = false;
  // The second one comes back a little later.
  run(2s);
  c2.cut = false;
  run(5s);
  EXPECT_EQ(c2.keeper->own().cameras, before.cameras) << "nothing was given to the first one";
  // One that does not come back is waited for no longer than that.
  for (Node& node : nodes_) node.cut = true;
  run(6s);
  planner.cut = c1.cut = false;
  run(8s);
  EXPECT_EQ(c1.keeper->own().cameras.size(), 40U);
}

TEST_F(PlanKeeperTest, APlanThatIsDeletedByHandBeginsNoTimeAnew) {
  Node& planner = start_planner(6);
  start("a", {NodeRole::camera});
  start("b", {NodeRole::camera});
  run(2s);
  const auto entries = [this] {
    std::map<std::string, PlannedCamera> all;
    for (const Node& node : nodes_)
      for (const auto& [camera, entry] : node.keeper->own().cameras) all[camera] = entry;
    return all;
  };
  const auto before = entries();
  ASSERT_THAT(before, SizeIs(6));
  run(60s);
  const auto change_all = [this](const std::string& value) {
    for (const RegistryEntry& entry : store_->range("/vigil/city/plan/").entries) {
      RegistryTransaction transaction;
      if (value.empty()) {
        transaction.changes.emplace_back(RegistryDelete{entry.key});
      } else {
        transaction.changes.emplace_back(RegistryPut{entry.key, value});
      }
      store_->commit(transaction);
    }
  };
  for (const char* spoiled : {"", "no plan"}) {
    change_all(spoiled);
    run(10s);
    const auto after = entries();
    ASSERT_THAT(after, SizeIs(6)) << spoiled;
    for (const auto& [camera, entry] : after)
      EXPECT_EQ(entry.origin_ms, before.at(camera).origin_ms) << spoiled;
  }
  // One that was removed is a new one when it comes again.
  want(planner, 5);
  run(5s);
  ASSERT_THAT(entries(), SizeIs(5));
  want(planner, 6);
  run(5s);
  ASSERT_THAT(entries(), SizeIs(6));
  for (const auto& [camera, entry] : entries())
    EXPECT_EQ(entry.origin_ms == before.at(camera).origin_ms, camera != "cam-100005") << camera;
}

}  // namespace
}  // namespace vigil::cluster
