// Which node serves which item: cameras on camera nodes, streams on GPU nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vigil::cluster {

/// in: takes items; draining: keeps its items until they are moved away, and takes none; gone: has none.
enum class PlacementNodeState : std::uint8_t { in, draining, gone };

struct PlacementNode {
  std::string name;
  /// Its share of the load is by weight. From a millionth to a million; 0: as if it drained.
  double weight = 1;
  /// In load units, never exceeded; infinity: no limit.
  double capacity = 0;
  PlacementNodeState state = PlacementNodeState::in;
};

/// Nodes at which items are not to be, as long as others have room for them.
struct PlacementBars {
  /// None comes, and none stays.
  std::set<std::string> closed = {};
  /// None comes.
  std::set<std::string> no_more = {};
};

struct PlacementItem {
  std::string name;
  /// In load units, up to a million of them.
  double load = 1;
  /// Where it is now; empty: nowhere.
  std::string node = {};
  /// Null: none. Outlives the call.
  const PlacementBars* bars = nullptr;
};

struct PlacementOptions {
  /// What the nodes are for, in words of reasons.
  std::string role = "camera";
  /// By what part of its share a node may have more or less than that: 0.05 is 5 %. From 0 to 1.
  double slack = 0.05;
  /// Moves of items that could stay where they are, in one call.
  std::size_t most_moves = 50;
};

/// Why an item was to be placed.
enum class PlaceCause : std::uint8_t {
  /// It was not: it is where it was.
  keeps,
  /// It was nowhere.
  starts,
  node_gone,
  /// Its node has less capacity than its items take.
  node_over_capacity,
  /// It is closed to it (`PlacementBars`).
  node_closed,
  node_drains,
  /// Its node had more than its share, or the new one less.
  evens_out,
};

/// Why it is on that node and on no other.
enum class PlaceChoice : std::uint8_t {
  /// It was there.
  kept,
  /// `rank` says which choice of its own it is.
  preferred,
  /// That node had the least.
  emptiest,
  /// All have their shares, and this one the least of those that it fits on.
  over_share,
  /// It is nowhere:
  no_node,
  no_capacity,
  bad_load,
};

/// Where an item is, and why.
struct Place {
  std::string item;
  /// Empty: nowhere.
  std::string node;
  PlaceCause cause = PlaceCause::keeps;
  PlaceChoice choice = PlaceChoice::kept;
  /// Where it was; empty: nowhere.
  std::string before;
  /// Of preferred: 1 is its first choice; of others 0.
  std::size_t rank = 0;
  /// Of a rank above 1: its first choice, which has no room.
  std::string full;
  /// That has its share alone, and capacity left.
  bool has_share = false;
  /// Its node drains, and it is to be moved yet.
  bool is_to_move = false;

  bool is_placed() const { return !node.empty(); }
  /// Whether it could have stayed: of such moves there are `most_moves` at most.
  bool is_rebalanced() const { return cause == PlaceCause::node_drains || cause == PlaceCause::evens_out; }
  friend bool operator==(const Place&, const Place&) = default;
};

/// In words, in one line: "its node gate-7 is gone; second choice: gate-3 is full". `role`: of the options.
std::string why(const Place& place, std::string_view role);

struct NodeLoad {
  std::string node;
  /// What it has now; what it would have if all were even; what it may have: its share and the slack, or the
  /// load of the largest item, if that is more, but no more than its capacity.
  double load = 0;
  double share = 0;
  double bound = 0;
  std::size_t items = 0;
  friend bool operator==(const NodeLoad&, const NodeLoad&) = default;
};

struct Placement {
  /// Of every item, by name.
  std::vector<Place> places;
  /// Those of them that are elsewhere than before, as indices into `places`.
  std::vector<std::size_t> moves;
  /// Of the moves, those of items that could have stayed.
  std::size_t rebalanced = 0;
  /// Whether more is to be moved, in a later call: `most_moves` were.
  bool has_more_moves = false;
  /// Of every node that has items or takes some, by name.
  std::vector<NodeLoad> nodes;
  /// What of the input makes no sense, a line each: names that come twice, nodes of no sensible capacity or
  /// weight (they are used as if they were gone).
  std::vector<std::string> faults;
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Each item has an order of preference over the nodes (rendezvous.h), and stays where it is as long as its
/// node is in, has the capacity, and is not over its bound. Others go to the first node of their order that
/// has room for them within its bound, those that lost their place before those that have none, large ones
/// first; where no bound has room, but a capacity has, to the node that then has the least for its weight.
/// Then up to `most_moves` items of draining nodes go the same way, and after these items of nodes that have
/// over (1 + slack) or under (1 - slack) of their share, until these are within half of the slack; each such
/// move makes the loads more even, so that they end. Items that have to be placed anyway even out for
/// nothing. An item goes to, or stays at, a node that is barred to it only where no other has the capacity;
/// it then rather stays. An item's load is rounded up to a millionth of a unit.
///
/// The same for the same nodes, items and options, in any order, on every machine. Keeps no state. Takes
/// O(nodes) for each item that has to be placed, and little for others. Throws std::invalid_argument for
/// options that make no sense, and for more than four million items or a million nodes.
Placement place(const std::vector<PlacementNode>& nodes, const std::vector<PlacementItem>& items,
                const PlacementOptions& options);

}  // namespace vigil::cluster
