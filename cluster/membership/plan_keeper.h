// What a node has by the fleet's plan; and the plan itself, if it is the one that plans.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/membership/plan.h"
#include "cluster/membership/planner.h"
#include "cluster/membership/registry_mirror.h"

namespace vigil::cluster {

/// For pieces of its loop alone.
class PlanKeeper {
 public:
  struct Options {
    PlannerOptions planning = {};
    /// What this node has is another now.
    std::function<void()> changed = {};
    std::function<void(const std::string&)> log = {};
  };

  /// All have to outlive it, and the loop what the registry still answers.
  PlanKeeper(Registry& registry, base::Loop& loop, const base::Clock& clock, FleetMember& member,
             Options options);
  ~PlanKeeper();
  PlanKeeper(const PlanKeeper&) = delete;
  PlanKeeper& operator=(const PlanKeeper&) = delete;

  /// What this node has, by the newest plan that it knows. While the registry is silent, or set back, that
  /// does not change.
  const NodePlan& own() const { return own_; }

  /// The cameras that the fleet is to watch, by the configuration of this node, if it plans.
  void want(std::vector<WantedCamera> cameras);
  /// The fleet's members, or who plans, may be others now.
  void step();

  /// Of the last planning of this node: cameras without an owner or a stream, and why.
  const std::map<std::string, std::string>& unplaced() const { return unplaced_; }
  std::size_t handovers() const { return handovers_; }
  /// All of it, as far as this node follows it: it does while it plans, and from `follow` on.
  const FleetPlan& fleet() const { return fleet_; }
  void follow();

 private:
  void read_own();
  void read_fleet();
  void plan();
  void write(std::vector<PlanChange> changes);

  Registry& registry_;
  base::Loop& loop_;
  const base::Clock& clock_;
  FleetMember& member_;
  const Options options_;
  std::shared_ptr<PlanKeeper*> self_;
  RegistryMirror own_mirror_;
  std::optional<RegistryMirror> fleet_mirror_;
  bool follows_ = false;
  NodePlan own_;
  /// Of all plans that this node has had.
  Fence newest_ = 0;
  FleetPlan fleet_;
  std::optional<std::vector<WantedCamera>> wanted_;
  std::map<std::string, std::string> unplaced_;
  std::size_t handovers_ = 0;
  /// A transaction is under way, or what it has made has not been seen yet.
  bool writing_ = false;
  Revision written_ = 0;
  /// For these nodes, and the plan as it is, there was nothing to be changed; empty: that is not known.
  std::map<std::string, NodeRecord> settled_for_;
};

}  // namespace vigil::cluster
