#include "cluster/placement/shares.h"

#include <algorithm>
#include <cstddef>

namespace vigil::cluster {

std::vector<LoadUnits> shares_of(const std::vector<ShareNode>& nodes, LoadUnits total) {
  std::vector<LoadUnits> shares(nodes.size(), 0);
  std::vector<std::size_t> order;
  std::int64_t weights = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node].weight == 0) continue;
    order.push_back(node);
    weights += nodes[node].weight;
  }
  // Those first that are full the soonest; from the first one on that is not, none is.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Wide of_a = static_cast<Wide>(nodes[a].capacity) * static_cast<Wide>(nodes[b].weight);
    const Wide of_b = static_cast<Wide>(nodes[b].capacity) * static_cast<Wide>(nodes[a].weight);
    return of_a != of_b ? of_a < of_b : a < b;
  });
  bool all_full = true;
  for (const std::size_t node : order) {
    const auto& [capacity, weight] = nodes[node];
    all_full = all_full && static_cast<Wide>(capacity) * static_cast<Wide>(weights) <=
                               static_cast<Wide>(total) * static_cast<Wide>(weight);
    if (!all_full) {
      shares[node] = scaled_up(total, weight, weights);
      continue;
    }
    shares[node] = capacity;
    total -= capacity;
    weights -= weight;
  }
  return shares;
}

}  // namespace vigil::cluster
