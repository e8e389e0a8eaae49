#include "fleet/status/known_plans.h"

#include <exception>
#include <utility>

namespace vigil::fleet {

void KnownPlans::take(const cluster::RegistryRange& range, const std::string& prefix,
                      base::Clock::TimePoint now, const std::function<void(const std::string&)>& log) {
  at_ = now;
  std::map<std::string, cluster::Revision> modified;
  for (const cluster::RegistryEntry& entry : range.entries) modified[entry.key] = entry.modified;
  if (modified == modified_) return;
  auto plan = std::make_shared<cluster::FleetPlan>();
  for (const cluster::RegistryEntry& entry : range.entries) {
    const std::string node = entry.key.substr(prefix.size());
    const auto before = modified_.find(entry.key);
    const auto known = plan_->find(node);
    if (before != modified_.end() && before->second == entry.modified && known != plan_->end()) {
      plan->insert(*known);
      continue;
    }
    try {
      plan->emplace(node, cluster::parse_plan(entry.value));
    } catch (const std::exception& error) {
      if (log) log(entry.key + ": " + error.what());
    }
  }
  modified_ = std::move(modified);
  plan_ = std::move(plan);
  index_ = std::make_shared<PlanIndex>(plan_);
}

}  // namespace vigil::fleet
