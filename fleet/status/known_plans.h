// The plans of all nodes as the registry last told them to somebody who asks now and then.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cluster/planning/plan.h"
#include "cluster/registry/registry.h"
#include "fleet/status/plan_index.h"

namespace vigil::fleet {

/// Not thread-safe.
class KnownPlans {
 public:
  /// `prefix`: of the plans' keys. Plans that did not change are not read again, since all of them may be
  /// 20 MB. One that cannot be read counts as none: a line of `log`.
  void take(const cluster::RegistryRange& range, const std::string& prefix, base::Clock::TimePoint now,
            const std::function<void(const std::string&)>& log);

  /// Of nobody, before the registry has told any.
  const std::shared_ptr<const cluster::FleetPlan>& plan() const { return plan_; }
  const std::shared_ptr<const PlanIndex>& index() const { return index_; }
  /// When they were told; nothing: never.
  std::optional<base::Clock::TimePoint> at() const { return at_; }

 private:
  std::map<std::string, cluster::Revision> modified_;
  std::shared_ptr<const cluster::FleetPlan> plan_ = std::make_shared<cluster::FleetPlan>();
  std::shared_ptr<const PlanIndex> index_ = std::make_shared<PlanIndex>(plan_);
  std::optional<base::Clock::TimePoint> at_;
};

}  // namespace vigil::fleet
