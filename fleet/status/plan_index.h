// The fleet's plan, camera by camera.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/planning/plan.h"

namespace vigil::fleet {

/// A camera of the plan, which has to outlive it.
struct PlannedPlace {
  std::string_view camera;
  std::string_view owner;
  const cluster::PlannedCamera* entry = nullptr;
  /// Who has it, too, until its owner delivers; empty if nobody does.
  std::string_view former;
};

/// Made once of each plan: 100,000 cameras take a while. Immutable.
class PlanIndex {
 public:
  explicit PlanIndex(std::shared_ptr<const cluster::FleetPlan> plan);

  /// By name.
  const std::vector<PlannedPlace>& cameras() const { return cameras_; }
  /// Null if no node has it.
  const PlannedPlace* find(std::string_view camera) const;

  struct Load {
    std::size_t cameras = 0;
    std::size_t streams = 0;
  };
  /// By node; what it owns, and what it computes.
  const std::map<std::string, Load, std::less<>>& loads() const { return loads_; }
  std::size_t without_stream() const { return without_stream_; }
  std::size_t handing_over() const { return handing_over_; }
  /// How much of their cameras the fleet has room for: cameras by the names of rungs; all of it is "full".
  const std::map<std::string, std::size_t>& rungs() const { return rungs_; }

 private:
  std::shared_ptr<const cluster::FleetPlan> plan_;
  std::vector<PlannedPlace> cameras_;
  std::map<std::string, Load, std::less<>> loads_;
  std::size_t without_stream_ = 0;
  std::size_t handing_over_ = 0;
  std::map<std::string, std::size_t> rungs_;
};

}  // namespace vigil::fleet
