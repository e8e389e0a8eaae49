// Nodes that agree on a configuration over a registry in memory, in virtual time.
#include "cluster/membership/config_keeper.h"

#include <list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/registry/memory_registry.h"
#include "tests/cluster/virtual_loop.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::VirtualLoop;
using testing::VirtualTime;

struct Node {
  Node(VirtualTime& time, const std::shared_ptr<MemoryStore>& store, const std::string& name)
      : loop(time),
        registry(store, time,
                 {.post =
                      [this, &time](MemoryRegistry::Leg, std::function<void()> step) {
                        if (!cut) time.at(2ms, std::move(step));
                      },
                  .time_limit = 1000ms}) {
    NodeRecord record;
    record.name = name;
    record.incarnation = "1";
    record.control = {name, 7400};
    record.bulk = {name, 7401};
    member = std::make_unique<FleetMember>(
        registry, loop, time,
        FleetMember::Options{.fleet = "city", .record = record, .ttl = 3000ms, .changed = [this] {
                               if (keeper) keeper->step();
                             }});
    keeper = std::make_unique<ConfigKeeper>(
        registry, loop, *member,
        ConfigKeeper::Options{.apply =
                                  [this](const FleetConfig& config) {
                                    applied.push_back(config.hash + std::to_string(config.version));
                                  },
                              .warn = [this](const std::string& line) { log += line + '\n'; }});
  }

  NodeState state() const { return member->record().state; }

  bool cut = false;
  std::string log;
  std::vector<std::string> applied;
  VirtualLoop loop;
  MemoryRegistry registry;
  std::unique_ptr<FleetMember> member;
  std::unique_ptr<ConfigKeeper> keeper;
};

class ConfigKeeperTest : public ::testing::Test {
 protected:
  Node& start(const std::string& name, const std::string& hash) {
    Node& node = nodes_.emplace_back(time_, store_, name);
    node.keeper->read(hash, "");
    return node;
  }
  void kill(const Node& node) {
    nodes_.remove_if([&](const Node& each) { return &each == &node; });
  }
  void run(base::Duration time) {
    for (base::Duration done{0}; done < time; done += 50ms) {
      time_.advance(50ms);
      store_->expire();
      for (Node& node : nodes_) node.registry.expire();
    }
  }

  /// By somebody who is no node.
  void write(const std::string& value) {
    MemoryRegistry registry(store_, time_);
    registry.commit({.conditions = {}, .changes = {RegistryPut{"/vigil/city/config/current", value, 0}}},
                    [](const auto&) {});
  }

  VirtualTime time_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(time_);
  std::list<Node> nodes_;
};

TEST_F(ConfigKeeperTest, AFleetStartsAndChangesTogether) {
  Node& a = start("a", "A");
  Node& b = start("b", "A");
  EXPECT_EQ(a.state(), NodeState::joining);
  run(1s);
  EXPECT_THAT(a.applied, ElementsAre("A1"));
  EXPECT_THAT(b.applied, ElementsAre("A1"));
  EXPECT_EQ(b.state(), NodeState::ready);
  EXPECT_EQ(a.log, "") << "nothing of it is worth a line";

  a.keeper->read("B", "");
  run(5s);
  EXPECT_THAT(a.applied, ElementsAre("A1"));
  for (Node* node : {&a, &b}) {
    EXPECT_EQ(node->log, "configuration B is not applied: not read by b\n") << "once, on each";
    EXPECT_THAT(node->keeper->pending(), ElementsAre("configuration B is not applied: not read by b"));
  }
  b.keeper->read("B", "");
  run(1s);
  EXPECT_THAT(a.applied, ElementsAre("A1", "B2"));
  EXPECT_THAT(b.applied, ElementsAre("A1", "B2"));
  EXPECT_THAT(a.keeper->pending(), IsEmpty());
  EXPECT_EQ(a.member->nodes().at("b").config_version, 2U);
}

TEST_F(ConfigKeeperTest, ANodeThatIsGoneHoldsNothingUp) {
  Node& a = start("a", "A");
  Node& b = start("b", "A");
  run(1s);
  a.keeper->read("B", "");
  kill(b);
  run(5s);
  EXPECT_THAT(a.applied, ElementsAre("A1", "B2"));
  // It comes back with the file that it had, and the fleet stays where it is.
  Node& again = start("b", "A");
  run(5s);
  EXPECT_THAT(again.applied, IsEmpty());
  EXPECT_EQ(again.state(), NodeState::joining);
  EXPECT_THAT(again.log,
              HasSubstr("this node waits: the fleet's is B (version 2), and this node has read A"));
  EXPECT_THAT(a.applied, ElementsAre("A1", "B2"));
  again.keeper->read("B", "");
  run(1s);
  EXPECT_THAT(again.applied, ElementsAre("B2"));
  EXPECT_EQ(again.state(), NodeState::ready);
}

TEST_F(ConfigKeeperTest, NothingChangesWhileTheRegistryIsGone) {
  Node& a = start("a", "A");
  Node& b = start("b", "A");
  run(1s);
  for (Node& node : nodes_) node.cut = true;
  run(10s);
  a.keeper->read("B", "");
  b.keeper->read("B", "");
  run(10s);
  EXPECT_THAT(a.applied, ElementsAre("A1"));
  for (Node& node : nodes_) node.cut = false;
  run(10s);
  EXPECT_THAT(a.applied, ElementsAre("A1", "B2"));
  EXPECT_THAT(b.applied, ElementsAre("A1", "B2"));
}

TEST_F(ConfigKeeperTest, OneThatWaitsDoesNotPlan) {
  Node& old = start("a", "A");
  run(1s);
  EXPECT_TRUE(old.member->is_planner());
  start("b", "A");
  run(1s);
  // It is left behind, as after a lease that had ended.
  write(print(FleetConfig{"B", 2, {"A"}}));
  for (Node& node : nodes_)
    if (&node != &old) node.keeper->read("B", "");
  run(5s);
  EXPECT_EQ(old.state(), NodeState::joining);
  EXPECT_FALSE(old.member->is_planner());
  EXPECT_TRUE(nodes_.back().member->is_planner());
}

TEST_F(ConfigKeeperTest, WhatNobodyCanReadChangesNothingAndIsWrittenAnew) {
  Node& a = start("a", "A");
  Node& b = start("b", "A");
  run(1s);
  for (const char* garbage : {"", "B", "{\"hash\": 7}", "\xff"}) {
    a.log.clear();
    write(garbage);
    run(3s);
    EXPECT_THAT(a.log, HasSubstr("/vigil/city/config/current: no configuration of a fleet: ")) << garbage;
    ASSERT_TRUE(a.keeper->registered()) << garbage;
    EXPECT_EQ(*a.keeper->registered(), (FleetConfig{"A", 1, {}})) << garbage;
    EXPECT_EQ(b.state(), NodeState::ready);
  }
  EXPECT_THAT(b.applied, ElementsAre("A1"));
}

}  // namespace
}  // namespace vigil::cluster
