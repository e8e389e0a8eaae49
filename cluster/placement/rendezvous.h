// Rendezvous hashing (highest random weight): every item has an order of preference over all nodes, in which
// the first is each node equally often, or as often as its weight says. Who computes it gets the same order,
// and a node that comes or goes changes nothing between the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fnv1a.h"
#include "cluster/placement/load_units.h"

namespace vigil::cluster {

/// Every bit of the result depends on all bits of the value (the finalizer of splitmix64). FNV-1a alone is
/// not enough: the last letter of a name hardly reaches its upper bits.
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// -log2(1 - draw / 2^64) in units of 2^-48, in whole numbers, so that it is the same everywhere; never falls
/// as the draw grows, and does not lie below the true value. Above 0.
std::uint64_t wait_of(std::uint64_t draw);

/// What an item draws at a node is uniform, and its order is that of wait_of(draw) / weight, smallest first:
/// the order of -weight / log(u) for u = 1 - draw, largest first. Where weights are equal that is the order
/// of the draws, and no logarithm is taken. Thread-safe, as nothing of it changes.
class Rendezvous {
 public:
  struct Node {
    std::string_view name;
    /// From 1 to 2^40.
    std::int64_t weight = 1;
  };

  /// Nodes are known by their places in the list. Equal draws, which do not happen, are ordered by these, so
  /// the list should be sorted by name. The names are not kept.
  explicit Rendezvous(const std::vector<Node>& nodes);

  static std::uint64_t hash_of(std::string_view item) { return mixed(base::fnv1a(item)); }
  /// Of a node: not what an item of that name would have, or all such pairs would draw the same.
  static std::uint64_t seed_of(std::string_view node) {
    return mixed(base::fnv1a(node) ^ 0x6a09e667f3bcc908U);
  }

  std::size_t size() const { return weights_.size(); }

  /// The smaller, the rather: of one node, the order in which it prefers items. `item`: its hash.
  std::uint64_t draw(std::uint64_t item, std::size_t node) const { return mixed(item ^ seeds_[node]); }

  /// The first choice; nothing without nodes.
  std::optional<std::size_t> first(std::uint64_t item) const {
    return first_of(item, [](std::size_t) { return true; });
  }

  /// The first choice of those that `takes(node)` is true of.
  template <class Takes>
  std::optional<std::size_t> first_of(std::uint64_t item, const Takes& takes) const {
    Choice best;
    if (groups_.size() > kManyGroups) {
      double bound = std::numeric_limits<double>::infinity();
      for (std::size_t node = 0; node < size(); ++node) {
        const std::uint64_t draw = mixed(item ^ seeds_[node]);
        if (is_far(draw, node, bound) || !takes(node)) continue;
        consider({draw, weights_[node], node, wait_of(draw)}, best);
        bound = bound_of(best);
      }
    } else {
      for (const Group& group : groups_) {
        std::uint64_t least = ~std::uint64_t{0};
        std::size_t at = kNone;
        for (std::size_t place = group.begin; place < group.end; ++place) {
          const std::uint64_t draw = mixed(item ^ seeds_by_weight_[place]);
          if ((draw < least || at == kNone) && takes(nodes_by_weight_[place])) {
            least = draw;
            at = place;
          }
        }
        if (at == kNone) continue;
        consider({least, group.weight, nodes_by_weight_[at], groups_.size() > 1 ? wait_of(least) : 0}, best);
      }
    }
    return best.node == kNone ? std::nullopt : std::optional(best.node);
  }

  /// Whether it would rather be at a than at b.
  bool prefers(std::uint64_t item, std::size_t a, std::size_t b) const {
    return comes_before(choice(item, a), choice(item, b));
  }

  /// How many nodes come before this one in the item's order.
  std::size_t before(std::uint64_t item, std::size_t node) const;

  /// The first so many choices, in their order.
  std::vector<std::size_t> order(std::uint64_t item, std::size_t most) const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  /// From here on a logarithm for each takes longer than looking whether it is needed.
  static constexpr std::size_t kManyGroups = 8;

  /// Nodes of equal weight.
  struct Group {
    std::int64_t weight = 1;
    std::size_t begin = 0, end = 0;
  };

  struct Choice {
    std::uint64_t draw = 0;
    std::int64_t weight = 1;
    std::size_t node = kNone;
    /// wait_of(draw); not asked for where all weights are equal.
    std::uint64_t wait = 0;
  };

  Choice choice(std::uint64_t item, std::size_t node) const;
  static bool comes_before(const Choice& a, const Choice& b);
  static void consider(const Choice& candidate, Choice& best) {
    if (best.node == kNone || comes_before(candidate, best)) best = candidate;
  }

  /// Whether a draw is certainly not before what the bound is of, without a logarithm: -log2(1 - x) is no
  /// less than x · log2(e). Floating point is rounded, but what is near the bound is not far.
  bool is_far(std::uint64_t draw, std::size_t node, double bound) const {
    return static_cast<double>(static_cast<std::int64_t>(draw >> 11U)) * reaches_[node] > bound;
  }
  static double bound_of(const Choice& choice) {
    return (static_cast<double>(choice.wait) + 1) / static_cast<double>(choice.weight);
  }

  std::vector<Group> groups_;
  /// By group, then in the order of the list.
  std::vector<std::uint64_t> seeds_by_weight_;
  std::vector<std::size_t> nodes_by_weight_;
  /// In the order of the list.
  std::vector<std::int64_t> weights_;
  std::vector<std::uint64_t> seeds_;
  /// The least wait of a draw of 2^11, over the weight.
  std::vector<double> reaches_;
};

}  // namespace vigil::cluster
