// Fleets for the tests of placement.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cluster/placement/placement.h"

namespace vigil::cluster {

/// One of the elements; the same on every machine, which the distributions of the standard are not.
template <class T>
const T& one_of(std::mt19937_64& random, const std::vector<T>& elements) {
  return elements[random() % elements.size()];
}

inline std::vector<PlacementNode> even_nodes(int count, double capacity = 1e6) {
  std::vector<PlacementNode> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back({"node-" + std::to_string(i), 1, capacity});
  return nodes;
}

inline std::vector<PlacementItem> even_items(int count, double load = 1) {
  std::vector<PlacementItem> items;
  for (int i = 0; i < count; ++i) items.push_back({"camera-" + std::to_string(i), load});
  return items;
}

/// The items, where the placement has put them.
inline std::vector<PlacementItem> adopted(std::vector<PlacementItem> items, const Placement& placement) {
  std::map<std::string, std::string> nodes;
  for (const Place& place : placement.places) nodes[place.item] = place.node;
  for (PlacementItem& item : items) item.node = nodes.at(item.name);
  return items;
}

/// The item's; one that is not there fails the test by an exception.
inline const Place& place_of(const Placement& placement, const std::string& item) {
  for (const Place& place : placement.places)
    if (place.item == item) return place;
  throw std::out_of_range(item);
}

inline const NodeLoad& load_of(const Placement& placement, const std::string& node) {
  for (const NodeLoad& load : placement.nodes)
    if (load.node == node) return load;
  throw std::out_of_range(node);
}

struct Fleet {
  std::vector<PlacementNode> nodes;
  std::vector<PlacementItem> items;
  PlacementOptions options;
};

/// Of any kind that makes sense: few nodes or none, none with room, loads of 0, items on nodes that nobody
/// knows.
inline Fleet random_fleet(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Fleet fleet;
  const std::uint64_t nodes = random() % 14;
  const bool has_limits = random() % 2 == 0;
  const bool has_weights = random() % 2 == 0;
  for (std::uint64_t i = 0; i < nodes; ++i) {
    PlacementNode node{"node-" + std::to_string(i)};
    node.weight = has_weights ? one_of<double>(random, {0, 0.5, 1, 1, 2, 3.25}) : 1;
    node.capacity = has_limits ? static_cast<double>(random() % 60) : std::numeric_limits<double>::infinity();
    using State = PlacementNodeState;
    node.state =
        one_of<State>(random, {State::in, State::in, State::in, State::in, State::draining, State::gone});
    fleet.nodes.push_back(node);
  }
  const std::uint64_t items = random() % 250;
  const bool has_loads = random() % 2 == 0;
  const std::uint64_t placed = random() % 4;
  for (std::uint64_t i = 0; i < items; ++i) {
    PlacementItem item{"camera-" + std::to_string(i)};
    if (has_loads) item.load = one_of<double>(random, {0, 0.1, 0.25, 1, 1, 2, 7.3});
    if (random() % 4 < placed) item.node = "node-" + std::to_string(random() % (nodes + 2));
    fleet.items.push_back(item);
  }
  fleet.options.slack = one_of<double>(random, {0, 0.05, 0.05, 0.2, 1});
  fleet.options.most_moves = one_of<std::size_t>(random, {0, 1, 10, 1000});
  return fleet;
}

}  // namespace vigil::cluster
