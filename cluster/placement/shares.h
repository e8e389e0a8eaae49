// What each node of a fleet would have if all were even.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/placement/load_units.h"

namespace vigil::cluster {

struct ShareNode {
  LoadUnits capacity = 0;
  /// In millionths; 0: it has no share.
  std::int64_t weight = 0;
};

/// Shares of the total by weight, rounded up; what is beyond a node's capacity is shared by the others. If
/// all capacities are less than the total, each has its capacity.
std::vector<LoadUnits> shares_of(const std::vector<ShareNode>& nodes, LoadUnits total);

}  // namespace vigil::cluster
