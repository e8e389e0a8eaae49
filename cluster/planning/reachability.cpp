#include "cluster/planning/reachability.h"

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

std::vector<const NodeRecord*> Reachability::ready(NodeRole role) const {
  std::vector<const NodeRecord*> found;
  for (const auto& [name, node] : nodes_)
    if (node.state == NodeState::ready && node.roles.contains(role)) found.push_back(&node);
  return found;
}

bool Reachability::reaches_none(const std::string& node, NodeRole role) const {
  if (!cuts_.contains(node)) return false;
  bool is_any_there = false;
  for (const NodeRecord* const other : ready(role)) {
    if (other->apart) continue;
    if (!is_cut(node, other->name)) return false;
    is_any_there = true;
  }
  return is_any_there;
}

const PlacementBars* Reachability::keep(NodeRole role, std::set<std::string> closed) {
  const auto [kept, is_new] = kept_.try_emplace({role, std::move(closed)});
  PlacementBars& bars = kept->second;
  if (is_new) {
    const std::set<std::string>& all = kept->first.second;
    std::size_t open = 0, open_with_clock = 0;
    for (const NodeRecord* const node : ready(role)) {
      if (all.contains(node->name)) continue;
      ++open;
      if (node->clock_off) {
        bars.no_more.insert(node->name);
      } else {
        ++open_with_clock;
      }
    }
    if (open > 0) bars.closed = all;
    if (open_with_clock == 0) bars.no_more.clear();
  }
  return bars.closed.empty() && bars.no_more.empty() ? nullptr : &bars;
}

const PlacementBars* Reachability::bars_for(NodeRole role, std::string_view partner, std::string_view other) {
  if (is_calm_) return nullptr;
  const auto of = [this](std::string_view node) {
    return cuts_.contains(node) ? std::string(node) : std::string();
  };
  const auto [asked, is_new] = asked_.try_emplace({role, of(partner), of(other)}, nullptr);
  if (!is_new) return asked->second;
  std::set<std::string> closed;
  for (const auto& [name, node] : nodes_)
    if (node.apart && node.roles.contains(role)) closed.insert(name);
  for (const std::string_view each : {partner, other}) {
    const auto cuts = cuts_.find(each);
    if (cuts == cuts_.end()) continue;
    for (const std::string& name : cuts->second)
      if (const auto node = nodes_.find(name); node != nodes_.end() && node->second.roles.contains(role))
        closed.insert(name);
  }
  return asked->second = keep(role, std::move(closed));
}

const PlacementBars* Reachability::bars_for_owners() {
  if (is_calm_) return nullptr;
  std::set<std::string> closed;
  for (const auto& [name, node] : nodes_)
    if (node.roles.contains(NodeRole::camera) &&
        (node.apart || reaches_none(name, NodeRole::stream) || reaches_none(name, NodeRole::gateway)))
      closed.insert(name);
  return keep(NodeRole::camera, std::move(closed));
}

}  // namespace vigil::cluster
