// Nodes of one fleet over a registry in memory, in virtual time.
#pragma once

#include <list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/membership/fleet_member.h"
#include "cluster/registry/memory_registry.h"
#include "tests/cluster/membership/deaf_registry.h"
#include "tests/cluster/virtual_loop.h"

namespace vigil::cluster::testing {

using namespace std::chrono_literals;

/// A node and its own way to the registry, which can be cut.
struct MemberNode {
  MemberNode(VirtualTime& time, const std::shared_ptr<MemoryStore>& store, const std::string& name,
             const std::string& incarnation, const FleetMember::Options& more = {})
      : loop(time),
        registry(store, time,
                 {.post =
                      [this, &time](MemoryRegistry::Leg, std::function<void()> step) {
                        if (!cut) time.at(2ms, std::move(step));
                      },
                  .time_limit = 1000ms}) {
    NodeRecord record;
    record.name = name;
    record.incarnation = incarnation;
    record.control = {more.record.control.host.empty() ? name : more.record.control.host, 7400};
    record.bulk = {name, 7401};
    record.state = NodeState::ready;
    member = std::make_unique<FleetMember>(
        ears, loop, time,
        FleetMember::Options{.fleet = "city",
                             .record = record,
                             .ttl = 3000ms,
                             .entering = more.entering,
                             .namesake = more.namesake,
                             .changed = [this] { ++changes; },
                             .log = [this](const std::string& line) { log += line + '\n'; }});
  }

  std::vector<std::string> sees() const {
    std::vector<std::string> names;
    for (const auto& [name, record] : member->nodes()) names.push_back(name);
    return names;
  }

  bool cut = false;
  int changes = 0;
  std::string log;
  VirtualLoop loop;
  MemoryRegistry registry;
  DeafRegistry ears{registry};
  std::unique_ptr<FleetMember> member;
};

class FleetMemberTest : public ::testing::Test {
 protected:
  using Node = MemberNode;

  Node& start(const std::string& name, const std::string& incarnation = "1",
              const FleetMember::Options& more = {}) {
    return nodes_.emplace_back(time_, store_, name, incarnation, more);
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

  VirtualTime time_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(time_);
  std::list<Node> nodes_;
};

}  // namespace vigil::cluster::testing
