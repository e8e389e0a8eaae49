#include "fleet/node/plan_progress.h"

#include "fleet/node/node_desk.h"

namespace vigil::fleet {

using cluster::NodeRole;

cluster::Fence settled_of(const cluster::NodePlan& plan,
                          const std::function<bool(const std::string& camera)>& is_tried) {
  std::map<cluster::Fence, bool> tried;
  for (const auto& [camera, entry] : plan.cameras)
    if (entry.hand_to.empty()) tried[entry.fence] = is_tried(camera);
  return cluster::settled_up_to(tried);
}

std::set<cluster::Fence> filled_of(
    const cluster::NodePlan& plan,
    const std::function<bool(const std::string& camera, const cluster::PlannedCamera& entry)>& is_full) {
  std::set<cluster::Fence> full;
  for (const auto& [camera, entry] : plan.cameras)
    if (!entry.former_stream.empty() && entry.hand_to.empty() && is_full(camera, entry))
      full.insert(entry.stream_fence);
  return full;
}

bool is_drained(const cluster::NodeRecord& self, const cluster::NodePlan& own,
                const cluster::FleetPlan* fleet, const std::map<std::string, cluster::NodeRecord>& nodes,
                bool computes) {
  const auto could = [&](NodeRole role) { return has_successor(nodes, self, role); };
  if (!own.cameras.empty() && could(NodeRole::camera)) return false;
  if (!computes || (!could(NodeRole::vision) && !could(NodeRole::stream))) return true;
  return fleet != nullptr && !fleet::computes(*fleet, nodes, self.name);
}

}  // namespace vigil::fleet
