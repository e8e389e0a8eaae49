// A placement while it is being made. A part of placement.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "cluster/placement/load_units.h"
#include "cluster/placement/placement.h"
#include "cluster/placement/rendezvous.h"

namespace vigil::cluster {

/// Nodes and items in the order of their names, each once and with sensible numbers; nodes that are gone are
/// left out. Others than placement.cpp have no use for it.
class PlacementDesk {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Of a node, for an item (`PlacementBars`).
  enum class Bar : std::uint8_t { none, no_more, closed };

  struct Node {
    std::string_view name;
    LoadUnits capacity = 0;
    /// In millionths. 0: takes nothing.
    std::int64_t weight = 0;
    /// The rest is the desk's.
    LoadUnits load = 0, share = 0;
    /// Beyond these it is uneven; within the inner ones it is even again.
    LoadUnits low = 0, inner_low = 0, inner_high = 0, high = 0;
    std::vector<std::uint32_t> items = {};
    /// How many of them are moved anyway.
    std::size_t free_items = 0;

    bool takes() const { return weight > 0; }
  };

  struct Item {
    std::string_view name;
    LoadUnits load = 0;
    /// Where it was, of the nodes that are left.
    std::uint32_t before = kNone;
    PlaceCause cause = PlaceCause::keeps;
    /// Which of the desk's; kNone: none.
    std::uint32_t bars = kNone;
    /// The rest is the desk's.
    PlaceChoice choice = PlaceChoice::kept;
    std::uint32_t node = kNone;
    /// Of `Node::items`.
    std::uint32_t position = 0;
    /// It is moved anyway, wherever it goes.
    bool is_free = false;
    std::uint32_t rank = 0, full = kNone;
    bool has_share = false;
    std::uint64_t hash = 0;
  };

  /// `bars`: each of every node. `slack`: in millionths.
  PlacementDesk(std::vector<Node> nodes, std::vector<Item> items, std::vector<std::vector<Bar>> bars,
                std::int64_t slack, std::size_t most_moves);

  void run();

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Item>& items() const { return items_; }
  bool has_more_moves() const { return has_more_moves_; }

 private:
  /// By how full they are of their shares, the emptiest first.
  struct Emptier {
    const std::vector<Node>* nodes;
    bool operator()(std::uint32_t a, std::uint32_t b) const;
  };
  void share_out(std::int64_t slack);
  void keep();
  void shed_overload(std::uint32_t node);
  void place_waiting();
  bool is_open(const Item& item, std::uint32_t node) const {
    return item.bars == kNone || bars_[item.bars][node] == Bar::none;
  }
  bool choose(Item& item, bool even_barred = false);
  bool stay(Item& item);
  void drain();
  void even_out(bool only_free);
  bool relieve(std::uint32_t from, bool only_free);
  bool fill(std::uint32_t to, bool only_free);
  std::uint32_t best_of(const Node& from, std::uint32_t to, bool only_free) const;
  bool take_over(std::uint32_t from, std::uint32_t to, bool only_free);
  bool spend(Item& item, PlaceCause cause);
  void put(Item& item, std::uint32_t node);
  void remove(Item& item);
  std::uint32_t index_of(const Item& item) const { return static_cast<std::uint32_t>(&item - items_.data()); }

  std::vector<Node> nodes_;
  std::vector<Item> items_;
  std::vector<std::vector<Bar>> bars_;
  /// Nodes that take items; rendezvous_ knows them by their places here.
  std::vector<std::uint32_t> taking_;
  Rendezvous rendezvous_;
  /// Nodes that have a share, while they are evened out.
  std::set<std::uint32_t, Emptier> by_fill_;
  std::size_t moves_left_ = 0;
  bool has_more_moves_ = false;
};

}  // namespace vigil::cluster
