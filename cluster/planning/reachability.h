// Where cameras and their streams are better not given, since whoever deals with them there has no way there.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/membership/node_record.h"
#include "cluster/placement/placement.h"

namespace vigil::cluster {

/// By what nodes tell in their records (`NodeRecord::unreachable`, `apart`, `clock_off`). What is so for all
/// nodes that could do the work bars none of them: there, everything stays as it is. Not thread-safe.
class Reachability {
 public:
  /// `nodes` has to outlive it.
  explicit Reachability(const std::map<std::string, NodeRecord>& nodes);

  /// Whether one of the two has said that there is no way to the other.
  bool is_cut(std::string_view a, std::string_view b) const;
  /// Whether it has no way to anybody, or nobody to it.
  bool is_apart(const std::string& node) const;

  /// Of the nodes with this role, those to which something is not to be given that these partners (empty:
  /// none) deal with there; null: none. Valid as long as this.
  const PlacementBars* bars_for(NodeRole role, std::string_view partner, std::string_view other = {});
  /// Of those that read cameras: also those that have no way to any node with streams, or to any gateway, if
  /// others have.
  const PlacementBars* bars_for_owners();

 private:
  /// Those that may be given something.
  std::vector<const NodeRecord*> ready(NodeRole role) const;
  /// Whether there are some with this role, and it has no way to any.
  bool reaches_none(const std::string& node, NodeRole role) const;
  const PlacementBars* keep(NodeRole role, std::set<std::string> closed);

  const std::map<std::string, NodeRecord>& nodes_;
  /// Both ways.
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> cuts_;
  bool is_calm_ = true;
  /// By role and partners that are cut off from somebody.
  std::map<std::tuple<NodeRole, std::string, std::string>, const PlacementBars*> asked_;
  /// By role and what is closed: what is equal is one, as thousands may lack the same node.
  std::map<std::pair<NodeRole, std::set<std::string>>, PlacementBars> kept_;
};

}  // namespace vigil::cluster
