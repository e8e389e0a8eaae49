// What holds of every placement, over fleets of all kinds.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fnv1a.h"
#include "cluster/placement/placement.h"
#include "tests/cluster/placement/fleets.h"

namespace vigil::cluster {
namespace {

constexpr std::uint64_t kFleets = 400;
/// Of sums of doubles, and of shares, which are rounded up.
constexpr double kRounding = 1e-5;

std::map<std::string, PlacementNode> by_name(const std::vector<PlacementNode>& nodes) {
  std::map<std::string, PlacementNode> result;
  for (const PlacementNode& node : nodes) result.emplace(node.name, node);
  return result;
}

bool takes(const PlacementNode& node) {
  return node.state == PlacementNodeState::in && node.weight > 0;
}

TEST(Placements, EveryItemIsSomewhereOrHasAReason) {
  int refused = 0, placed = 0;
  for (std::uint64_t seed = 1; seed <= kFleets; ++seed) {
    const Fleet fleet = random_fleet(seed);
    const auto nodes = by_name(fleet.nodes);
    const bool any_takes =
        std::any_of(fleet.nodes.begin(), fleet.nodes.end(), [](const auto& node) { return takes(node); });
    const Placement placement = place(fleet.nodes, fleet.items, fleet.options);
    ASSERT_TRUE(placement.faults.empty()) << seed;
    ASSERT_EQ(placement.places.size(), fleet.items.size()) << seed;
    std::set<std::string> seen;
    for (const Place& place : placement.places) {
      ASSERT_TRUE(seen.insert(place.item).second) << seed;
      ASSERT_FALSE(why(place, "camera").empty()) << seed;
      if (place.is_placed()) {
        ++placed;
        ASSERT_TRUE(nodes.contains(place.node)) << seed;
        const PlacementNode& node = nodes.at(place.node);
        ASSERT_TRUE(takes(node) || (place.node == place.before && node.state != PlacementNodeState::gone))
            << seed;
        ASSERT_EQ(place.choice == PlaceChoice::kept, place.node == place.before) << seed;
        ASSERT_EQ(place.cause == PlaceCause::keeps, place.node == place.before) << seed;
      } else {
        ++refused;
        ASSERT_EQ(place.choice, any_takes ? PlaceChoice::no_capacity : PlaceChoice::no_node) << seed;
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(placed, 10'000);
}

TEST(Placements, LoadsAreThoseOfTheItemsAndWithinTheirBounds) {
  int over = 0;
  for (std::uint64_t seed = 1; seed <= kFleets; ++seed) {
    const Fleet fleet = random_fleet(seed);
    const auto nodes = by_name(fleet.nodes);
    const Placement placement = place(fleet.nodes, fleet.items, fleet.options);
    std::map<std::string, double> item_loads;
    double largest = 0;
    for (const PlacementItem& item : fleet.items)
      largest = std::max(largest, item_loads[item.name] = item.load);
    std::map<std::string, double> loads;
    std::set<std::string> may_be_over, has_others;
    for (const Place& place : placement.places) {
      if (!place.is_placed()) continue;
      loads[place.node] += item_loads[place.item];
      if (place.choice == PlaceChoice::over_share) may_be_over.insert(place.node);
      if (place.choice != PlaceChoice::kept && item_loads[place.item] > 0) has_others.insert(place.node);
    }
    double total_share = 0;
    for (const NodeLoad& node : placement.nodes) {
      ASSERT_NEAR(node.load, loads[node.node], kRounding) << seed;
      ASSERT_LE(node.load, nodes.at(node.node).capacity) << seed;
      total_share += node.share;
      ASSERT_LE(node.bound, std::max(node.share * (1 + fleet.options.slack) + kRounding, largest)) << seed;
      if (node.load <= node.bound) continue;
      // What it had already, or what says so itself.
      ++over;
      ASSERT_TRUE(!has_others.contains(node.node) || may_be_over.contains(node.node))
          << seed << ' ' << node.node;
    }
    double total = 0;
    for (const PlacementItem& item : fleet.items) total += item.load;
    ASSERT_LE(total_share, total + kRounding) << seed;
  }
  EXPECT_GT(over, 0) << "or nothing is said of these";
}

TEST(Placements, MovesAreWhatIsElsewhereAndFewCouldHaveStayed) {
  for (std::uint64_t seed = 1; seed <= kFleets; ++seed) {
    const Fleet fleet = random_fleet(seed);
    const auto nodes = by_name(fleet.nodes);
    const Placement placement = place(fleet.nodes, fleet.items, fleet.options);
    std::map<std::string, double> before;
    for (const PlacementItem& item : fleet.items) before[item.node] += item.load;
    std::vector<std::size_t> moves;
    std::size_t rebalanced = 0;
    for (std::size_t i = 0; i < placement.places.size(); ++i) {
      const Place& place = placement.places[i];
      if (place.node == place.before) continue;
      moves.push_back(i);
      if (place.is_rebalanced()) {
        ++rebalanced;
        ASSERT_TRUE(place.is_placed()) << seed;
        continue;
      }
      // It was nowhere, or could not stay.
      const bool had_to = place.before.empty() || !nodes.contains(place.before) ||
                          nodes.at(place.before).state == PlacementNodeState::gone ||
                          before[place.before] > nodes.at(place.before).capacity;
      ASSERT_TRUE(had_to) << seed << ' ' << place.item;
    }
    ASSERT_EQ(placement.moves, moves) << seed;
    ASSERT_EQ(placement.rebalanced, rebalanced) << seed;
    ASSERT_LE(rebalanced, fleet.options.most_moves) << seed;
  }
}

TEST(Placements, TheOrderOfTheInputDecidesNothing) {
  for (std::uint64_t seed = 1; seed <= kFleets; ++seed) {
    Fleet fleet = random_fleet(seed);
    const Placement placement = place(fleet.nodes, fleet.items, fleet.options);
    std::mt19937_64 random(seed);
    std::shuffle(fleet.nodes.begin(), fleet.nodes.end(), random);
    std::shuffle(fleet.items.begin(), fleet.items.end(), random);
    ASSERT_EQ(place(fleet.nodes, fleet.items, fleet.options), placement) << seed;
  }
}

TEST(Placements, ComeToRestAndHaveRoomForNothingThatIsRefused) {
  for (std::uint64_t seed = 1; seed <= kFleets; ++seed) {
    Fleet fleet = random_fleet(seed);
    if (fleet.options.most_moves == 0) continue;
    Placement placement = place(fleet.nodes, fleet.items, fleet.options);
    for (int call = 0; !placement.moves.empty(); ++call) {
      ASSERT_LT(call, 400) << seed;
      fleet.items = adopted(fleet.items, placement);
      placement = place(fleet.nodes, fleet.items, fleet.options);
    }
    ASSERT_FALSE(placement.has_more_moves) << seed;
    const auto nodes = by_name(fleet.nodes);
    for (std::size_t i = 0; i < placement.places.size(); ++i) {
      const Place& place = placement.places[i];
      if (place.is_placed() && !place.is_to_move) continue;
      const double load = std::find_if(fleet.items.begin(), fleet.items.end(), [&](const auto& item) {
                            return item.name == place.item;
                          })->load;
      for (const NodeLoad& node : placement.nodes) {
        if (!takes(nodes.at(node.node))) continue;
        ASSERT_GT(node.load + load, nodes.at(node.node).capacity - kRounding) << seed << ' ' << place.item;
      }
    }
  }
}

/// Nothing is over or under its slack any more, unless its items are too large for it.
TEST(Placements, AtRestTheyAreAsEvenAsTheyHaveToBe) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<PlacementNode> nodes = even_nodes(static_cast<int>(2 + random() % 10));
    for (PlacementNode& node : nodes) node.weight = one_of<double>(random, {1, 1, 2, 3});
    std::vector<PlacementItem> items = even_items(1000);
    for (PlacementItem& item : items) {
      item.load = one_of<double>(random, {0.5, 1, 2});
      item.node = "node-" + std::to_string(random() % 2);
    }
    const PlacementOptions options{.most_moves = 30};
    Placement placement = place(nodes, items, options);
    for (int call = 0; !placement.moves.empty(); ++call) {
      ASSERT_LT(call, 100) << seed;
      items = adopted(items, placement);
      placement = place(nodes, items, options);
    }
    for (const NodeLoad& node : placement.nodes) {
      EXPECT_LE(node.load, node.share * 1.05 + kRounding) << seed << ' ' << node.node;
      EXPECT_GE(node.load, node.share * 0.95 - kRounding) << seed << ' ' << node.node;
    }
  }
}

std::uint64_t fingerprint(const Placement& placement) {
  std::uint64_t value = base::kFnv1aStart;
  for (const Place& place : placement.places)
    value = base::fnv1a(place.item + '>' + place.node + '\n', value);
  return value;
}

/// What it was when this was written; a build that has another would move cameras when it takes over.
TEST(Placements, AreTheSameInEveryBuild) {
  std::uint64_t value = base::kFnv1aStart;
  for (std::uint64_t seed = 1; seed <= kFleets; ++seed) {
    const Fleet fleet = random_fleet(seed);
    const std::uint64_t print = fingerprint(place(fleet.nodes, fleet.items, fleet.options));
    value = base::fnv1a(std::to_string(print), value);
  }
  EXPECT_EQ(value, 9032059414597350246U);
}

}  // namespace
}  // namespace vigil::cluster
