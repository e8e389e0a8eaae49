#include "cluster/placement/placement.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cluster/placement/load_units.h"
#include "cluster/placement/placement_desk.h"

namespace vigil::cluster {
namespace {

using Desk = PlacementDesk;

constexpr std::size_t kMostNodes = 1'000'000;
constexpr double kMillion = 1e6;

void check(std::size_t nodes, std::size_t items, const PlacementOptions& options) {
  if (!(options.slack >= 0 && options.slack <= 1))
    throw std::invalid_argument("the slack of a placement has to be from 0 to 1");
  if (items > kMostItems) throw std::invalid_argument("a placement has room for four million items");
  if (nodes > kMostNodes) throw std::invalid_argument("a placement has room for a million nodes");
}

/// In millionths; nothing if it is none.
std::optional<std::int64_t> weight_units(double weight) {
  if (weight == 0) return 0;
  if (!(weight >= 1 / kMillion && weight <= kMillion)) return std::nullopt;
  return std::max<std::int64_t>(std::llround(weight * kMillion), 1);
}

/// Indices in the order of the names, and what else is to decide among those of one name.
template <class Element, class Rest>
std::vector<std::size_t> by_name(const std::vector<Element>& elements, const Rest& rest) {
  std::vector<std::size_t> order(elements.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto is_before = [&](std::size_t a, std::size_t b) {
    const int names = elements[a].name.compare(elements[b].name);
    return names != 0 ? names < 0 : rest(elements[a]) < rest(elements[b]);
  };
  if (!std::is_sorted(order.begin(), order.end(), is_before))
    std::sort(order.begin(), order.end(), is_before);
  return order;
}

/// Nodes that are there, each once: of two with a name, the one that can do less.
std::vector<Desk::Node> usable(const std::vector<PlacementNode>& nodes, std::vector<std::string>& faults) {
  const auto rest = [](const PlacementNode& node) {
    return std::tuple(-static_cast<int>(node.state), capacity_units(node.capacity).value_or(-1),
                      weight_units(node.weight).value_or(-1));
  };
  std::vector<Desk::Node> result;
  const std::string* last = nullptr;
  for (const std::size_t index : by_name(nodes, rest)) {
    const PlacementNode& node = nodes[index];
    if (last != nullptr && *last == node.name) {
      faults.push_back("node " + node.name + ": there are two of this name");
      continue;
    }
    last = &node.name;
    if (node.state == PlacementNodeState::gone) continue;
    const auto capacity = capacity_units(node.capacity);
    const auto weight = weight_units(node.weight);
    if (!capacity || !weight) {
      faults.push_back("node " + node.name + ": its " + (capacity ? "weight" : "capacity") +
                       " makes no sense, so it is not used");
      continue;
    }
    Desk::Node usable{node.name, *capacity, *weight};
    if (node.state == PlacementNodeState::draining) usable.weight = 0;
    result.push_back(std::move(usable));
  }
  return result;
}

struct Items {
  /// Of every name, and which of the desk's it is; nothing for a load that makes no sense.
  std::vector<std::pair<const PlacementItem*, std::optional<std::size_t>>> all;
  std::vector<Desk::Item> sensible;
  /// Of each set of bars, what it is for each node.
  std::vector<std::vector<Desk::Bar>> bars;
};

std::vector<Desk::Bar> bars_of(const PlacementBars& bars, const std::vector<Desk::Node>& nodes) {
  std::vector<Desk::Bar> result;
  result.reserve(nodes.size());
  for (const Desk::Node& node : nodes) {
    const std::string name(node.name);
    result.push_back(bars.closed.contains(name)    ? Desk::Bar::closed
                     : bars.no_more.contains(name) ? Desk::Bar::no_more
                                                   : Desk::Bar::none);
  }
  return result;
}

/// Each once: of two with a name, the larger.
Items sensible(const std::vector<PlacementItem>& items, const std::vector<Desk::Node>& nodes,
               std::vector<std::string>& faults) {
  std::unordered_map<std::string_view, std::uint32_t> indices;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) indices.emplace(nodes[node].name, node);
  const auto rest = [](const PlacementItem& item) {
    return std::tuple<LoadUnits, std::string_view>(-load_units(item.load).value_or(-1), item.node);
  };
  Items result;
  std::unordered_map<const PlacementBars*, std::uint32_t> known_bars;
  result.all.reserve(items.size());
  result.sensible.reserve(items.size());
  for (const std::size_t index : by_name(items, rest)) {
    const PlacementItem& item = items[index];
    if (!result.all.empty() && result.all.back().first->name == item.name) {
      faults.push_back("item " + item.name + ": there are two of this name");
      continue;
    }
    const auto load = load_units(item.load);
    if (!load) {
      result.all.emplace_back(&item, std::nullopt);
      continue;
    }
    Desk::Item entry{item.name, *load};
    entry.cause = PlaceCause::starts;
    if (!item.node.empty()) {
      const auto node = indices.find(item.node);
      entry.before = node == indices.end() ? Desk::kNone : node->second;
      entry.cause = node == indices.end() ? PlaceCause::node_gone : PlaceCause::keeps;
    }
    if (item.bars != nullptr) {
      const auto [known, is_new] = known_bars.try_emplace(item.bars, result.bars.size());
      if (is_new) result.bars.push_back(bars_of(*item.bars, nodes));
      entry.bars = known->second;
      if (entry.cause == PlaceCause::keeps && result.bars[entry.bars][entry.before] == Desk::Bar::closed)
        entry.cause = PlaceCause::node_closed;
    }
    result.all.emplace_back(&item, result.sensible.size());
    result.sensible.push_back(entry);
  }
  return result;
}

Place place_of(const PlacementItem& item, const Desk::Item* entry, const std::vector<Desk::Node>& nodes) {
  Place place;
  place.item = item.name;
  place.before = item.node;
  if (entry == nullptr) {
    place.cause = item.node.empty() ? PlaceCause::starts : PlaceCause::keeps;
    place.choice = PlaceChoice::bad_load;
    return place;
  }
  place.cause = entry->cause;
  place.choice = entry->choice;
  if (entry->node == Desk::kNone) return place;
  place.node = nodes[entry->node].name;
  place.is_to_move = !nodes[entry->node].takes();
  place.rank = entry->rank;
  if (entry->full != Desk::kNone) place.full = nodes[entry->full].name;
  place.has_share = entry->has_share;
  return place;
}

std::string choice_of(const Place& place) {
  static const char* const kOrdinals[] = {"first", "second", "third", "fourth", "fifth"};
  std::string words = place.rank >= 1 && place.rank <= std::size(kOrdinals)
                          ? std::string(kOrdinals[place.rank - 1]) + " choice"
                          : "choice " + std::to_string(place.rank);
  if (place.rank <= 1) return words;
  if (place.rank == 2) return words + ": " + place.full + (place.has_share ? " has its share" : " is full");
  return words + ": " + place.full + " and " +
         (place.rank == 3 ? "another" : std::to_string(place.rank - 2) + " others") +
         (place.has_share ? " have their shares or are full" : " are full");
}

}  // namespace

std::string why(const Place& place, std::string_view role) {
  std::string cause;
  switch (place.cause) {
    case PlaceCause::keeps:
      if (place.is_placed()) return place.is_to_move ? "keeps its node, which drains" : "keeps its node";
      break;
    case PlaceCause::starts:
      break;
    case PlaceCause::node_gone:
      cause = "its node " + place.before + " is gone; ";
      break;
    case PlaceCause::node_over_capacity:
      cause = "its node " + place.before + " has no capacity for it; ";
      break;
    case PlaceCause::node_closed:
      cause = "there is no way to its node " + place.before + "; ";
      break;
    case PlaceCause::node_drains:
      cause = "its node " + place.before + " drains; ";
      break;
    case PlaceCause::evens_out:
      return "moved to even out";
  }
  switch (place.choice) {
    case PlaceChoice::kept:
      return cause + "keeps its node";
    case PlaceChoice::preferred:
      return cause + choice_of(place);
    case PlaceChoice::emptiest:
      return cause + place.node + " had the least";
    case PlaceChoice::over_share:
      return cause + "all nodes have their share, and " + place.node + " the least";
    case PlaceChoice::no_node:
      return cause + "no node with the role " + std::string(role);
    case PlaceChoice::no_capacity:
      return cause + "no capacity";
    case PlaceChoice::bad_load:
      return cause + "its load is no number from 0 to a million";
  }
  return cause;
}

Placement place(const std::vector<PlacementNode>& nodes, const std::vector<PlacementItem>& items,
                const PlacementOptions& options) {
  check(nodes.size(), items.size(), options);
  Placement result;
  std::vector<Desk::Node> desk_nodes = usable(nodes, result.faults);
  Items all = sensible(items, desk_nodes, result.faults);
  Desk desk(std::move(desk_nodes), std::move(all.sensible), std::move(all.bars),
            std::llround(options.slack * kMillion), options.most_moves);
  desk.run();
  result.has_more_moves = desk.has_more_moves();
  result.places.reserve(all.all.size());
  for (const auto& [item, index] : all.all) {
    const Place& place =
        result.places.emplace_back(place_of(*item, index ? &desk.items()[*index] : nullptr, desk.nodes()));
    if (place.node == place.before) continue;
    result.moves.push_back(result.places.size() - 1);
    if (place.is_rebalanced()) ++result.rebalanced;
  }
  for (const Desk::Node& node : desk.nodes())
    result.nodes.push_back({std::string(node.name), in_load_units(node.load), in_load_units(node.share),
                            in_load_units(node.high), node.items.size()});
  return result;
}

}  // namespace vigil::cluster
