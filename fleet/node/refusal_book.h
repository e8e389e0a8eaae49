// Which of its cameras a node is refused, as somebody who had them before.
#pragma once

#include <map>
#include <set>
#include <string>

#include "cluster/planning/plan.h"

namespace vigil::fleet {

/// The highest fence by which each camera was refused, until the plan gives it a higher one. Not thread-safe.
class RefusalBook {
 public:
  void refused(const std::string& camera, cluster::Fence fence);

  /// By these cameras of the node's plan: the fences that they have and are refused by, for whoever plans to
  /// give higher ones. One that is handed over is refused, and has to be. One that is refused by the very
  /// fence that it has is told of: of a registry that was set back, another owner has the same.
  std::set<cluster::Fence> too_low(const std::map<std::string, cluster::PlannedCamera>& own);

 private:
  std::map<std::string, cluster::Fence> highest_;
};

}  // namespace vigil::fleet
