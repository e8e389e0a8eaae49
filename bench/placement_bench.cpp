#include "bench/placement_bench.h"

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>

#include "base/duration.h"

namespace vigil::bench {
namespace {

using cluster::Placement;
using cluster::PlacementNodeState;

constexpr int kMinutes = 60;
/// A node that comes gets its share a few cameras at a time, and has it from this part of it on.
constexpr double kFilled = 0.9;

struct Spread {
  double most = 0;
  double least = std::numeric_limits<double>::infinity();
  void add(double load, double share) {
    most = std::max(most, load / share);
    least = std::min(least, load / share);
  }
};

/// In any minute of a day, of the nodes that are in; the least of those that have had their share since they
/// came.
struct DaySpread {
  Spread worst;
  /// Minutes until a node that came had its share.
  int longest = 0;
  /// Nodes that have come and have not had it, for so many minutes; at the beginning all have.
  std::map<std::string, int> filling = {};

  void look(const PlacementFleet& fleet, const Placement& placement) {
    std::set<std::string> away;
    for (const cluster::PlacementNode& node : fleet.nodes)
      if (node.state != PlacementNodeState::in) away.insert(node.name), filling[node.name] = 0;
    for (const cluster::NodeLoad& node : placement.nodes) {
      if (node.share <= 0 || away.contains(node.node)) continue;
      Spread own;
      own.add(node.load, node.share);
      worst.most = std::max(worst.most, own.most);
      const auto came = filling.find(node.node);
      if (came != filling.end()) longest = std::max(longest, ++came->second);
      if (came != filling.end() && own.least >= kFilled) filling.erase(came);
      if (!filling.contains(node.node)) worst.least = std::min(worst.least, own.least);
    }
  }
};

/// Of the nodes that are in.
Spread spread_of(const Placement& placement) {
  Spread spread;
  for (const cluster::NodeLoad& node : placement.nodes)
    if (node.share > 0) spread.add(node.load, node.share);
  return spread;
}

Spread spread_of(const PlacementFleet& fleet, const std::vector<std::size_t>& nodes) {
  std::vector<double> loads(fleet.nodes.size());
  double load = 0, weights = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    loads[nodes[i]] += fleet.cameras[i].load;
    load += fleet.cameras[i].load;
  }
  for (const cluster::PlacementNode& node : fleet.nodes)
    if (node.state == PlacementNodeState::in) weights += node.weight;
  Spread spread;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (fleet.nodes[i].state == PlacementNodeState::in)
      spread.add(loads[i], load * fleet.nodes[i].weight / weights);
  return spread;
}

void adopt(PlacementFleet& fleet, const Placement& placement) {
  // Both are in the order of their names.
  for (const std::size_t move : placement.moves) fleet.cameras[move].node = placement.places[move].node;
}

void add_spread(Figures& figures, const std::string& when, const Spread& spread) {
  figures.add(when + "_most_over_share", "1", spread.most);
  figures.add(when + "_least_over_share", "1", spread.least);
}

PlacementMinute changed_nodes() {
  PlacementMinute minute;
  minute.changed_nodes = true;
  return minute;
}

/// As a share of the cameras that were there.
double share_of(std::size_t moves, const PlacementFleet& fleet) {
  return static_cast<double>(moves) / static_cast<double>(fleet.cameras.size());
}

}  // namespace

PlacementBench::PlacementBench(const PlacementBenchOptions& options, const base::Clock& clock)
    : options_(options), clock_(clock) {}

Placement PlacementBench::placed(const PlacementFleet& fleet, std::size_t most_moves, const char* figure) {
  const auto begin = clock_.now();
  Placement placement = cluster::place(fleet.nodes, fleet.cameras, {"camera", options_.slack, most_moves});
  if (figure != nullptr)
    bounded_.add(figure, "s", std::chrono::duration<double>(clock_.now() - begin).count());
  return placement;
}

std::vector<PlacementBench::Follower> PlacementBench::followers(const PlacementFleet& fleet) {
  std::vector<Follower> result;
  result.push_back({modulo_control(), &modulo_});
  result.push_back({rendezvous_control(fleet), &rendezvous_});
  for (Follower& follower : result) follower.control->start(fleet);
  return result;
}

void PlacementBench::run() {
  PlacementFleet fleet = placement_fleet(options_.fleet);
  for (int run = 0; run < options_.runs; ++run) {
    for (cluster::PlacementItem& camera : fleet.cameras) camera.node.clear();
    fresh(fleet);
    const auto node =
        static_cast<std::size_t>(run) * fleet.nodes.size() / static_cast<std::size_t>(options_.runs);
    lose_a_node(fleet, node);
    add_a_node(fleet, node);
  }
  if (options_.hours > 0) day(std::move(fleet));
}

void PlacementBench::fresh(PlacementFleet& fleet) {
  const Placement placement = placed(fleet, options_.most_moves, "full_placement");
  add_spread(bounded_, "fresh", spread_of(placement));
  adopt(fleet, placement);
  placed(fleet, options_.most_moves, "nothing_changed");
  for (const Follower& follower : followers(fleet))
    add_spread(*follower.figures, "fresh", spread_of(fleet, follower.control->nodes()));
}

void PlacementBench::lose_a_node(PlacementFleet fleet, std::size_t node) {
  std::vector<Follower> controls = followers(fleet);
  fleet.nodes[node].state = PlacementNodeState::gone;
  const Placement placement = placed(fleet, options_.most_moves, "lost_node");
  bounded_.add("moved_by_lost_node", "1", share_of(placement.moves.size(), fleet));
  for (Follower& follower : controls)
    follower.figures->add("moved_by_lost_node", "1",
                          share_of(follower.control->follow(fleet, changed_nodes()), fleet));
}

void PlacementBench::add_a_node(PlacementFleet fleet, std::size_t node) {
  fleet.nodes[node].state = PlacementNodeState::gone;
  for (cluster::PlacementItem& camera : fleet.cameras) camera.node.clear();
  adopt(fleet, placed(fleet, options_.most_moves));
  std::vector<Follower> controls = followers(fleet);
  fleet.nodes[node].state = PlacementNodeState::in;
  std::size_t moves = 0;
  int calls = 0;
  for (bool at_rest = false; !at_rest;) {
    const Placement placement = placed(fleet, options_.most_moves);
    adopt(fleet, placement);
    moves += placement.moves.size();
    at_rest = placement.moves.empty();
    if (!at_rest) ++calls;
  }
  bounded_.add("moved_by_new_node", "1", share_of(moves, fleet));
  bounded_.add("calls_for_new_node", "1", calls);
  for (Follower& follower : controls)
    follower.figures->add("moved_by_new_node", "1",
                          share_of(follower.control->follow(fleet, changed_nodes()), fleet));
}

void PlacementBench::day(PlacementFleet fleet) {
  std::vector<Follower> controls = followers(fleet);
  PlacementDay churn(fleet, options_.fleet, options_.day);
  DaySpread spread;
  for (int hour = 0; hour < options_.hours; ++hour) {
    std::size_t necessary = 0, rebalanced = 0;
    for (int i = 0; i < kMinutes; ++i) {
      const PlacementMinute minute = churn.next();
      const Placement placement = placed(fleet, options_.most_moves, "minute_of_day");
      for (const std::size_t move : placement.moves)
        if (placement.places[move].cause != cluster::PlaceCause::starts) ++necessary;
      necessary -= placement.rebalanced;
      rebalanced += placement.rebalanced;
      spread.look(fleet, placement);
      adopt(fleet, placement);
      for (Follower& follower : controls) {
        follower.moves += follower.control->follow(fleet, minute);
        follower.most = std::max(follower.most, spread_of(fleet, follower.control->nodes()).most);
      }
    }
    bounded_.add("moves_an_hour", "1", static_cast<double>(necessary + rebalanced));
    bounded_.add("necessary_moves_an_hour", "1", static_cast<double>(necessary));
    for (Follower& follower : controls)
      follower.figures->add("moves_an_hour", "1", static_cast<double>(std::exchange(follower.moves, 0)));
  }
  bounded_.add("day_most_over_share", "1", spread.worst.most);
  bounded_.add("day_least_over_share", "1", spread.worst.least);
  bounded_.add("day_longest_filling", "min", spread.longest);
  add_spread(bounded_, "churned", spread_of(placed(fleet, 0)));
  for (const Follower& follower : controls) {
    follower.figures->add("day_most_over_share", "1", follower.most);
    add_spread(*follower.figures, "churned", spread_of(fleet, follower.control->nodes()));
  }
}

void PlacementBench::print(const nlohmann::json& about, std::ostream& out) const {
  for (const auto& [method, figures] : {std::pair("bounded", &bounded_), std::pair("modulo", &modulo_),
                                        std::pair("rendezvous", &rendezvous_)}) {
    nlohmann::json line = about;
    line["method"] = method;
    figures->print(line, out);
  }
}

}  // namespace vigil::bench
