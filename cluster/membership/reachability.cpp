#include "cluster/membership/reachability.h"

#include <algorithm>
#include <utility>

namespace vigil::cluster {

Reachability::Reachability(const std::map<std::string, NodeRecord>& nodes) : nodes_(nodes) {
  for (const auto& [name, node] : nodes) {
    is_calm_ = is_calm_ && node.unreachable.empty() && !node.apart && !node.clock_off;
    for (const std::string& other : node.unreachable) {
      cuts_[name].insert(other);
      cuts_[other].insert(name);
    }
  }
}

bool Reachability::is_cut(std::string_view a, std::string_view b) const {
  const auto cuts = cuts_.find(a);
  return cuts != cuts_.end() && cuts->second.contains(b);
}

bool Reachability::is_apart(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.apart;
}

/// Those that may be given something.
std::vector<const NodeRecord*> Reachability::ready(NodeRole role) const {
  std::vector<const NodeRecord*> found;
  for (const auto& [name, node] : nodes_)
    if (node.state == NodeState::ready && node.roles.contains(role)) found.push_back(&node);
  return found;
}

const PlacementBars* Reachability::keep(const std::string& key, NodeRole role, std::set<std::string> closed) {
  PlacementBars bars;
  std::size_t open = 0, open_with_clock = 0;
  for (const NodeRecord* const node : ready(role)) {
    if (closed.contains(node->name)) continue;
    ++open;
    if (node->clock_off) {
      bars.no_more.insert(node->name);
    } else {
      ++open_with_clock;
    }
  }
  if (open > 0) bars.closed = std::move(closed);
  if (open_with_clock == 0) bars.no_more.clear();
  const PlacementBars& result = kept_[key] = std::move(bars);
  return result.closed.empty() && result.no_more.empty() ? nullptr : &result;
}

const PlacementBars* Reachability::bars_for(NodeRole role, std::string_view partner, std::string_view other) {
  if (is_calm_) return nullptr;
  std::string key(name_of(role));
  for (const std::string_view each : {partner, other})
    if (cuts_.contains(each)) key.append(" ").append(each);
  if (const auto known = kept_.find(key); known != kept_.end())
    return known->second.closed.empty() && known->second.no_more.empty() ? nullptr : &known->second;
  std::set<std::string> closed;
  for (const auto& [name, node] : nodes_)
    if (node.roles.contains(role) && (node.apart || is_cut(partner, name) || is_cut(other, name)))
      closed.insert(name);
  return keep(key, role, std::move(closed));
}

const PlacementBars* Reachability::bars_for_owners() {
  if (is_calm_) return nullptr;
  std::set<std::string> streams;
  for (const NodeRecord* const node : ready(NodeRole::stream))
    if (!node->apart) streams.insert(node->name);
  std::set<std::string> closed;
  for (const auto& [name, node] : nodes_) {
    if (!node.roles.contains(NodeRole::camera)) continue;
    const bool reaches_none = !streams.empty() && std::ranges::all_of(streams, [&](const auto& stream) {
      return is_cut(name, stream);
    });
    if (node.apart || reaches_none) closed.insert(name);
  }
  return keep("owners", NodeRole::camera, std::move(closed));
}

}  // namespace vigil::cluster
