// How far a node has come with its plan, as it tells whoever plans.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "cluster/membership/node_record.h"
#include "cluster/planning/plan.h"

namespace vigil::fleet {

/// Up to which fence (`cluster::settled_up_to`) each of the plan's cameras, but for those that are handed
/// over, delivers, or was tried in vain.
cluster::Fence settled_of(const cluster::NodePlan& plan,
                          const std::function<bool(const std::string& camera)>& is_tried);

/// Streams, by their numbers, that need their former no more (`cluster::PlanningInput::filled`): their
/// windows are full (`is_full`), or there is no use in waiting.
std::set<cluster::Fence> filled_of(
    const cluster::NodePlan& plan,
    const std::function<bool(const std::string& camera, const cluster::PlannedCamera& entry)>& is_full);

/// Whether nothing is left with a node that ends, or nobody could go on with what is. `fleet`: all plans;
/// null: they are not known (yet). `computes`: it has devices.
bool is_drained(const cluster::NodeRecord& self, const cluster::NodePlan& own,
                const cluster::FleetPlan* fleet, const std::map<std::string, cluster::NodeRecord>& nodes,
                bool computes);

}  // namespace vigil::fleet
