// What a node has by the fleet's plan; and the plan itself, if it is the one that plans.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/membership/registry_mirror.h"
#include "cluster/planning/plan.h"
#include "cluster/planning/planner.h"

namespace vigil::cluster {

/// For pieces of its loop alone.
class PlanKeeper {
 public:
  struct Options {
    PlannerOptions planning = {};
    /// What this node has is another now.
    std::function<void()> changed = {};
    std::function<void(const std::string&)> log = {};
    /// What a simulation puts around it.
    std::function<Planning(const PlanningInput&, const PlannerOptions&)> plan = plan_fleet;
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
  std::size_t fillings() const { return fillings_; }
  /// And of whose streams there is less, or nothing, for want of room.
  std::size_t degraded() const { return degraded_; }
  std::size_t refused() const { return refused_; }
  /// All of it, as far as this node follows it: it does while it plans, and from `follow` on.
  const FleetPlan& fleet() const { return fleet_; }
  /// Whether that is all that the registry has.
  bool knows_fleet() const { return fleet_mirror_ && fleet_mirror_->is_current(); }
  void follow();

 private:
  void read_own();
  void read_fleet();
  void remember_origins(const NodePlan& gone);
  const std::map<std::string, std::int64_t>& lost_origins();
  bool wants(const std::string& camera) const;
  void changed();
  bool is_set_back() const;
  void plan();
  void plan_after(base::Duration time);
  void look_whether_it_was_elected();
  void look_whether_it_came_back();
  base::Duration returning(std::size_t owned) const;
  base::Duration starting();
  /// What nodes that are there have told whoever plans: fences, by node.
  std::map<std::string, std::set<Fence>> told(const RegistryMirror& mirror, const std::string& prefix) const;
  void write();
  void written(const RegistryResult<RegistryCommit>& result);

  Registry& registry_;
  base::Loop& loop_;
  const base::Clock& clock_;
  FleetMember& member_;
  const Options options_;
  std::shared_ptr<PlanKeeper*> self_;
  RegistryMirror own_mirror_;
  std::optional<RegistryMirror> fleet_mirror_;
  std::optional<RegistryMirror> settled_mirror_;
  std::optional<RegistryMirror> filled_mirror_;
  std::optional<RegistryMirror> refused_mirror_;
  bool follows_ = false;
  NodePlan own_;
  /// Of all plans that this node has had.
  Fence newest_ = 0;
  FleetPlan fleet_;
  /// Of cameras that were in a plan that is another now (`PlanningInput::origins`), and may be in that one or
  /// in others.
  std::map<std::string, std::int64_t> origins_;
  std::optional<std::vector<WantedCamera>> wanted_;
  std::map<std::string, std::string> unplaced_;
  std::size_t handovers_ = 0, fillings_ = 0, degraded_ = 0, refused_ = 0;
  /// What was known when this node planned last is not all that is known now.
  bool is_due_ = false;
  /// The nodes as they were when that was seen last (`FleetMember::changes`); nothing: it did not plan.
  std::optional<std::uint64_t> planned_for_;
  std::optional<base::Clock::TimePoint> planned_at_;
  bool will_plan_ = false;
  /// How many there were, when the last one came, and since when most cameras have no living owner.
  std::size_t nodes_ = 0;
  base::Clock::TimePoint came_at_;
  std::optional<base::Clock::TimePoint> starts_at_;
  /// Which record of this node holds, and since when: another one after its lease had ended.
  Revision entered_ = 0;
  base::Clock::TimePoint entered_at_;
  /// What the last planning has changed and is not written; a transaction is under way, or what it has made
  /// has not been seen yet.
  std::deque<PlanChange> unwritten_;
  bool writing_ = false;
  /// The highest fence of all plans that were sent to be written, whether or not they were: of one that was
  /// not answered, nobody knows whether it will be.
  Fence sent_ = 0;
  /// The revision of the entry by which this node plans, or did last.
  Revision elected_ = 0;
  /// Its last transaction, and when that was.
  Revision written_ = 0;
  base::Clock::TimePoint written_at_;
};

}  // namespace vigil::cluster
