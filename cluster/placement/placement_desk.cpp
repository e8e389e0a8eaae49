#include "cluster/placement/placement_desk.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "cluster/placement/shares.h"

namespace vigil::cluster {
namespace {

constexpr std::int64_t kWhole = 1'000'000;

std::vector<std::uint32_t> taking_of(const std::vector<PlacementDesk::Node>& nodes) {
  std::vector<std::uint32_t> taking;
  for (std::uint32_t node = 0; node < nodes.size(); ++node)
    if (nodes[node].takes()) taking.push_back(node);
  return taking;
}

Rendezvous rendezvous_of(const std::vector<PlacementDesk::Node>& nodes) {
  std::vector<Rendezvous::Node> taking;
  for (const PlacementDesk::Node& node : nodes)
    if (node.takes()) taking.push_back({node.name, node.weight});
  return Rendezvous(taking);
}

/// Whether a load of a share is less than another of another.
bool is_emptier(LoadUnits a_load, LoadUnits a_share, LoadUnits b_load, LoadUnits b_share) {
  return static_cast<Wide>(a_load) * static_cast<Wide>(b_share) <
         static_cast<Wide>(b_load) * static_cast<Wide>(a_share);
}

}  // namespace

bool PlacementDesk::Emptier::operator()(std::uint32_t a, std::uint32_t b) const {
  const Node& first = (*nodes)[a];
  const Node& second = (*nodes)[b];
  if (is_emptier(first.load, first.share, second.load, second.share)) return true;
  if (is_emptier(second.load, second.share, first.load, first.share)) return false;
  return a < b;
}

PlacementDesk::PlacementDesk(std::vector<Node> nodes, std::vector<Item> items,
                             std::vector<std::vector<Bar>> bars, std::int64_t slack, std::size_t most_moves)
    : nodes_(std::move(nodes)),
      items_(std::move(items)),
      bars_(std::move(bars)),
      taking_(taking_of(nodes_)),
      rendezvous_(rendezvous_of(nodes_)),
      by_fill_(Emptier{&nodes_}),
      moves_left_(most_moves) {
  for (Item& item : items_) item.hash = Rendezvous::hash_of(item.name);
  share_out(slack);
}

void PlacementDesk::share_out(std::int64_t slack) {
  LoadUnits total = 0, largest = 0;
  for (const Item& item : items_) {
    total += item.load;
    largest = std::max(largest, item.load);
  }
  std::vector<ShareNode> takers;
  takers.reserve(nodes_.size());
  // What no item may go to has no share, so that others have theirs of all there is.
  const auto is_closed_to_all = [this](std::uint32_t node) {
    return !items_.empty() && std::ranges::all_of(items_, [&](const Item& item) {
      return item.bars != kNone && bars_[item.bars][node] == Bar::closed;
    });
  };
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    takers.push_back({nodes_[i].capacity, is_closed_to_all(i) ? 0 : nodes_[i].weight});
  const std::vector<LoadUnits> shares = shares_of(takers, total);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    node.share = shares[i];
    const LoadUnits outer = scaled(node.share, slack, kWhole);
    const LoadUnits inner = scaled(node.share, slack, 2 * kWhole);
    node.low = node.share - outer;
    node.inner_low = node.share - inner;
    // Where there are fewer items than nodes, each node may have one.
    node.inner_high = std::min(node.capacity, std::max(node.share + inner, largest));
    node.high = std::min(node.capacity, std::max(node.share + outer, largest));
  }
}

void PlacementDesk::run() {
  keep();
  for (std::uint32_t node = 0; node < nodes_.size(); ++node)
    if (nodes_[node].load > nodes_[node].capacity) shed_overload(node);
  place_waiting();
  even_out(true);
  drain();
  even_out(false);
}

void PlacementDesk::keep() {
  for (Item& item : items_) {
    if (item.cause == PlaceCause::keeps) {
      put(item, item.before);
    } else {
      item.is_free = true;
    }
  }
}

/// As few items as possible go, of equal ones those that prefer the node least.
void PlacementDesk::shed_overload(std::uint32_t at) {
  Node& node = nodes_[at];
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  struct Candidate {
    LoadUnits load;
    std::uint64_t draw;
    std::uint32_t item;
    bool operator<(const Candidate& other) const {
      return std::tie(load, draw, item) < std::tie(other.load, other.draw, other.item);
    }
  };
  const std::uint64_t seed = Rendezvous::seed_of(node.name);
  std::vector<Candidate> candidates;
  candidates.reserve(node.items.size());
  for (const std::uint32_t item : node.items)
    candidates.push_back({items_[item].load, mixed(items_[item].hash ^ seed), item});
  std::sort(candidates.begin(), candidates.end());
  while (node.load > node.capacity) {
    const LoadUnits excess = node.load - node.capacity;
    auto chosen = std::lower_bound(candidates.begin(), candidates.end(), Candidate{excess, 0, 0});
    // The smallest that suffices, otherwise the largest.
    if (chosen == candidates.end()) --chosen;
    chosen = std::prev(std::upper_bound(chosen, candidates.end(), Candidate{chosen->load, kLast, kNone}));
    Item& item = items_[chosen->item];
    candidates.erase(chosen);
    remove(item);
    item.cause = PlaceCause::node_over_capacity;
    item.is_free = true;
  }
}

void PlacementDesk::place_waiting() {
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t item = 0; item < items_.size(); ++item)
    if (items_[item].node == kNone) waiting.push_back(item);
  const auto turn = [this](std::uint32_t index) {
    const Item& item = items_[index];
    return std::tuple(item.cause == PlaceCause::starts, -item.load, item.hash, index);
  };
  std::sort(waiting.begin(), waiting.end(),
            [&](std::uint32_t a, std::uint32_t b) { return turn(a) < turn(b); });
  for (const std::uint32_t item : waiting) {
    if (!choose(items_[item]) && !stay(items_[item]) && !choose(items_[item], true))
      items_[item].choice = taking_.empty() ? PlaceChoice::no_node : PlaceChoice::no_capacity;
  }
}

/// Where it may not be, if there is no room for it elsewhere.
bool PlacementDesk::stay(Item& item) {
  if (item.cause != PlaceCause::node_closed) return false;
  const Node& node = nodes_[item.before];
  if (node.load + item.load > node.capacity) return false;
  item.cause = PlaceCause::keeps;
  item.is_free = false;
  put(item, item.before);
  return true;
}

/// Puts an item that is nowhere, or that is to leave where it is.
bool PlacementDesk::choose(Item& item, bool even_barred) {
  const bool has_bars = item.bars != kNone;
  if (taking_.empty() || (even_barred && !has_bars)) return false;
  const auto may = [&](std::uint32_t node) { return even_barred || is_open(item, node); };
  const std::optional<std::size_t> best =
      has_bars ? rendezvous_.first_of(item.hash, [&](std::size_t place) { return may(taking_[place]); })
               : rendezvous_.first(item.hash);
  if (!best) return false;
  const std::size_t first = *best;
  const auto fits = [&](LoadUnits Node::*bound) {
    return [this, bound, &item, &may](std::size_t place) {
      const Node& node = nodes_[taking_[place]];
      return node.load + item.load <= node.*bound && may(taking_[place]);
    };
  };
  std::optional<std::size_t> chosen = first;
  if (!fits(&Node::inner_high)(first)) chosen = rendezvous_.first_of(item.hash, fits(&Node::inner_high));
  if (!chosen) chosen = rendezvous_.first_of(item.hash, fits(&Node::high));
  if (chosen) {
    if (item.node != kNone) remove(item);
    item.choice = PlaceChoice::preferred;
    // Those before its first one are barred to it.
    const auto before = [&](std::size_t place) { return rendezvous_.before(item.hash, place); };
    item.rank = *chosen == first
                    ? 1
                    : static_cast<std::uint32_t>(before(*chosen) - (has_bars ? before(first) : 0)) + 1;
    item.full = *chosen == first ? kNone : taking_[first];
    item.has_share = item.full != kNone && fits(&Node::capacity)(first);
    put(item, taking_[*chosen]);
    return true;
  }
  std::uint32_t least = kNone;
  for (const std::uint32_t index : taking_) {
    const Node& node = nodes_[index];
    if (node.load + item.load > node.capacity || !may(index)) continue;
    if (least == kNone ||
        is_emptier(node.load + item.load, node.weight, nodes_[least].load + item.load, nodes_[least].weight))
      least = index;
  }
  if (least == kNone) return false;
  if (item.node != kNone) remove(item);
  item.choice = PlaceChoice::over_share;
  put(item, least);
  return true;
}

void PlacementDesk::drain() {
  for (Node& node : nodes_) {
    if (node.takes()) continue;
    std::vector<std::uint32_t> leaving = node.items;
    std::sort(leaving.begin(), leaving.end());
    for (const std::uint32_t index : leaving) {
      if (moves_left_ == 0) {
        has_more_moves_ = true;
        return;
      }
      Item& item = items_[index];
      if (choose(item)) spend(item, PlaceCause::node_drains);
    }
  }
}

void PlacementDesk::even_out(bool only_free) {
  by_fill_.clear();
  for (const std::uint32_t node : taking_)
    if (nodes_[node].share > 0) by_fill_.insert(node);
  // The set changes while nodes are gone through.
  std::vector<std::uint32_t> over, under;
  for (const std::uint32_t index : by_fill_) {
    const Node& node = nodes_[index];
    if (node.load > (only_free ? node.inner_high : node.high)) over.push_back(index);
    if (node.load < (only_free ? node.inner_low : node.low)) under.push_back(index);
  }
  std::reverse(over.begin(), over.end());
  for (const std::uint32_t index : over)
    while (!has_more_moves_ && nodes_[index].load > nodes_[index].inner_high && relieve(index, only_free)) {
    }
  for (const std::uint32_t index : under)
    while (!has_more_moves_ && nodes_[index].load < nodes_[index].inner_low && fill(index, only_free)) {
    }
}

/// One item of this node goes to the emptiest that can have one.
bool PlacementDesk::relieve(std::uint32_t from, bool only_free) {
  for (const std::uint32_t to : by_fill_) {
    if (to == from) return false;
    if (take_over(from, to, only_free)) return true;
    if (has_more_moves_) return false;
  }
  return false;
}

/// This node gets one item of the fullest that can give one.
bool PlacementDesk::fill(std::uint32_t to, bool only_free) {
  for (auto from = by_fill_.rbegin(); from != by_fill_.rend() && *from != to; ++from) {
    if (take_over(*from, to, only_free)) return true;
    if (has_more_moves_) return false;
  }
  return false;
}

/// Of the items whose move makes the two nodes more even: one that is moved anyway, otherwise the one that
/// the new node would rather have.
std::uint32_t PlacementDesk::best_of(const Node& from, std::uint32_t to, bool only_free) const {
  const Node& taker = nodes_[to];
  const auto place =
      static_cast<std::size_t>(std::lower_bound(taking_.begin(), taking_.end(), to) - taking_.begin());
  std::uint32_t best = kNone;
  if (only_free && from.free_items == 0) return best;
  std::tuple<bool, std::uint64_t, std::uint32_t> best_turn;
  for (const std::uint32_t index : from.items) {
    const Item& item = items_[index];
    if (item.load == 0 || (only_free && !item.is_free) || taker.load + item.load > taker.high) continue;
    if (!is_open(item, to)) continue;
    // As full as the other is afterwards, at most.
    if (is_emptier(from.load - item.load, from.share, taker.load + item.load, taker.share)) continue;
    const std::tuple turn(!item.is_free, rendezvous_.draw(item.hash, place), index);
    if (best != kNone && best_turn < turn) continue;
    best = index;
    best_turn = turn;
  }
  return best;
}

bool PlacementDesk::take_over(std::uint32_t from, std::uint32_t to, bool only_free) {
  const std::uint32_t index = best_of(nodes_[from], to, only_free);
  if (index == kNone) return false;
  Item& item = items_[index];
  if (!spend(item, PlaceCause::evens_out)) return false;
  by_fill_.erase(from);
  by_fill_.erase(to);
  remove(item);
  put(item, to);
  item.choice = PlaceChoice::emptiest;
  item.rank = 0;
  item.full = kNone;
  item.has_share = false;
  by_fill_.insert(from);
  by_fill_.insert(to);
  return true;
}

/// Counts a move of an item that could stay; false if there are to be no more.
bool PlacementDesk::spend(Item& item, PlaceCause cause) {
  if (item.is_free) return true;
  if (moves_left_ == 0) {
    has_more_moves_ = true;
    return false;
  }
  --moves_left_;
  item.cause = cause;
  item.is_free = true;
  ++nodes_[item.node].free_items;
  return true;
}

void PlacementDesk::put(Item& item, std::uint32_t node) {
  item.node = node;
  item.position = static_cast<std::uint32_t>(nodes_[node].items.size());
  nodes_[node].items.push_back(index_of(item));
  nodes_[node].load += item.load;
  if (item.is_free) ++nodes_[node].free_items;
}

void PlacementDesk::remove(Item& item) {
  Node& node = nodes_[item.node];
  node.load -= item.load;
  if (item.is_free) --node.free_items;
  items_[node.items.back()].position = item.position;
  node.items[item.position] = node.items.back();
  node.items.pop_back();
  item.node = kNone;
}

}  // namespace vigil::cluster
