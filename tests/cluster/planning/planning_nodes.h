// Nodes that plan, and that have what is planned, over a registry in memory, in virtual time.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/planning/plan_keeper.h"
#include "cluster/registry/memory_registry.h"
#include "tests/cluster/registry/forwarding_registry.h"
#include "tests/cluster/virtual_loop.h"

namespace vigil::cluster::testing {

using namespace std::chrono_literals;

/// Of one node: plans that it sends are lost on their way, or are late; news of plans does not come.
class LossyRegistry final : public ForwardingRegistry {
 public:
  using ForwardingRegistry::ForwardingRegistry;

  void commit(RegistryTransaction transaction, Done<RegistryCommit> done) override {
    const bool is_plan =
        std::ranges::any_of(transaction.conditions, [](const auto& each) { return is_of_plans(each.key); });
    if (!is_plan) return ForwardingRegistry::commit(std::move(transaction), std::move(done));
    sent.push_back(transaction);
    if (!loses_plans) return ForwardingRegistry::commit(std::move(transaction), std::move(done));
    done(RegistryFailure{RegistryFailure::Kind::unreachable, "registry: no answer"});
  }
  std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                       std::function<void(RegistryResult<RegistryNews>)> seen) override {
    return ForwardingRegistry::watch(prefix, from, [this, prefix, seen = std::move(seen)](const auto& news) {
      if (!hears_no_plans || !is_of_plans(prefix)) seen(news);
    });
  }

  bool loses_plans = false;
  bool hears_no_plans = false;
  /// All that were sent, written or not.
  std::vector<RegistryTransaction> sent;

 private:
  static bool is_of_plans(const std::string& key) { return key.starts_with("/vigil/city/plan/"); }
};

struct PlanningNode {
  PlanningNode(VirtualTime& time, const std::shared_ptr<MemoryStore>& store, const std::string& name,
               std::set<NodeRole> roles, const std::string& incarnation)
      : loop(time),
        registry(store, time, {.post = [this, &time](MemoryRegistry::Leg, std::function<void()> step) {
                   if (!cut) time.at(2ms, std::move(step));
                 }}) {
    NodeRecord record;
    record.name = name;
    record.incarnation = incarnation;
    record.roles = std::move(roles);
    record.control = {name, 7400};
    record.bulk = {name, 7401};
    record.state = NodeState::ready;
    const auto say = [this](const std::string& line) { log += line + '\n'; };
    member = std::make_unique<FleetMember>(
        lossy, loop, time,
        FleetMember::Options{
            .fleet = "city", .record = record, .ttl = 3000ms, .changed = [this] { step(); }, .log = say});
    keeper = std::make_unique<PlanKeeper>(
        lossy, loop, time, *member,
        PlanKeeper::Options{.planning = {},
                            .changed = [this] { ++changes; },
                            .log = say,
                            .plan =
                                [this](const PlanningInput& input, const PlannerOptions& options) {
                                  ++plannings;
                                  return plan_fleet(input, options);
                                }});
  }
  void step() {
    if (keeper) keeper->step();
  }

  bool cut = false;
  int changes = 0;
  int plannings = 0;
  std::string log;
  VirtualLoop loop;
  MemoryRegistry registry;
  LossyRegistry lossy{registry};
  std::unique_ptr<FleetMember> member;
  std::unique_ptr<PlanKeeper> keeper;
};

class PlanningNodes : public ::testing::Test {
 protected:
  PlanningNode& start(const std::string& name, std::set<NodeRole> roles,
                      const std::string& incarnation = "1") {
    return nodes_.emplace_back(time_, store_, name, std::move(roles), incarnation);
  }
  PlanningNode& start_planner(std::size_t cameras) {
    PlanningNode& planner = start("p", {NodeRole::stream});
    planner.member->stand_for_planner(true);
    want(planner, cameras);
    return planner;
  }
  static void want(PlanningNode& node, std::size_t cameras) {
    std::vector<WantedCamera> wanted;
    for (std::size_t i = 0; i < cameras; ++i) wanted.push_back({"cam-" + std::to_string(100'000 + i)});
    node.keeper->want(std::move(wanted));
  }
  void kill(const PlanningNode& node) {
    nodes_.remove_if([&](const PlanningNode& each) { return &each == &node; });
  }
  void run(base::Duration time) {
    for (base::Duration done{0}; done < time; done += 50ms) {
      time_.advance(50ms);
      store_->expire();
      for (PlanningNode& node : nodes_) node.registry.expire();
    }
  }
  /// How many nodes have each camera.
  std::map<std::string, int> owners() const {
    std::map<std::string, int> owners;
    for (const PlanningNode& node : nodes_)
      for (const auto& [camera, entry] : node.keeper->own().cameras) ++owners[camera];
    return owners;
  }
  std::vector<int> counts() const {
    std::vector<int> counts;
    for (const auto& [camera, count] : owners()) counts.push_back(count);
    return counts;
  }

  VirtualTime time_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(time_);
  std::list<PlanningNode> nodes_;
};

}  // namespace vigil::cluster::testing
