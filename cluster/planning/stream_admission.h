// What of each camera's stream a fleet has room for: `admit` over the cameras of a plan. A part of planner.h.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/planning/plan.h"
#include "cluster/planning/planner.h"

namespace vigil::cluster {

/// Not thread-safe.
class StreamAdmission {
 public:
  struct Load {
    double stream = 1;
    double vision = 0.5;
  };

  /// Each is full. The cameras have to outlive it.
  StreamAdmission(const std::vector<WantedCamera>& cameras, double margin);

  /// `entries`: of each camera in turn what its owner has of it; null: nobody reads it, and it takes nothing.
  /// Their rungs, which say what was before, become those that the capacity, in load units, has room for;
  /// what was said of why stays while a rung does. From the first call on, `entries` say what was before it,
  /// too.
  void admit(const std::vector<PlannedCamera*>& entries, double capacity, base::Clock::WallTime now);

  /// Of the camera of this place: by its rung; of one that is refused, nothing.
  const Load& load(std::size_t camera) const { return loads_[camera]; }
  /// As of the last call: why not, by camera.
  const std::map<std::string, std::string>& refusals() const { return refusals_; }
  std::size_t degraded() const { return degraded_; }
  std::size_t refused() const { return refusals_.size(); }

 private:
  struct Before {
    std::string rung;
    std::string why;
  };

  const std::vector<WantedCamera>& cameras_;
  const double margin_;
  std::vector<Load> loads_;
  /// Of those that were less than full.
  std::map<std::size_t, Before> before_;
  bool was_called_ = false;
  std::map<std::string, std::string> refusals_;
  std::size_t degraded_ = 0;
};

}  // namespace vigil::cluster
