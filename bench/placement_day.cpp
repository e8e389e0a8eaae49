#include "bench/placement_day.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vigil::bench {
namespace {

using cluster::PlacementNodeState;

constexpr int kMinutesOfADay = 24 * 60;
/// How long a node drains before it goes.
constexpr int kDraining = 10;

/// "camera-0000042": names of one length are in the order of their numbers.
std::string name_of(const std::string& kind, std::size_t number) {
  const std::string digits = std::to_string(number);
  return kind + '-' + std::string(digits.size() < 7 ? 7 - digits.size() : 0, '0') + digits;
}

cluster::PlacementItem camera_of(std::size_t number, bool mixed_loads, std::mt19937_64& random) {
  cluster::PlacementItem camera{name_of("camera", number)};
  if (mixed_loads) camera.load = 0.5 + static_cast<double>(random() % 1501) / 1000;
  return camera;
}

}  // namespace

PlacementFleet placement_fleet(const PlacementFleetOptions& options) {
  PlacementFleet fleet;
  std::mt19937_64 random(options.seed);
  double load = 0;
  for (std::size_t i = 0; i < options.cameras; ++i) {
    fleet.cameras.push_back(camera_of(i, options.mixed_loads, random));
    load += fleet.cameras.back().load;
  }
  double weights = 0;
  for (std::size_t i = 0; i < options.nodes; ++i) {
    cluster::PlacementNode node{name_of("node", i)};
    if (options.mixed_weights) node.weight = static_cast<double>(1 + i % 3);
    weights += node.weight;
    fleet.nodes.push_back(std::move(node));
  }
  for (cluster::PlacementNode& node : fleet.nodes)
    node.capacity = 2 * std::max(load * node.weight / weights, 1.0);
  return fleet;
}

PlacementDay::PlacementDay(PlacementFleet& fleet, const PlacementFleetOptions& fleet_options,
                           const PlacementDayOptions& options)
    : fleet_(fleet),
      fleet_options_(fleet_options),
      options_(options),
      random_(fleet_options.seed + 1),
      until_(fleet.nodes.size()),
      cameras_(fleet.cameras.size()) {}

/// Within this minute.
bool PlacementDay::happens(double times_a_day) {
  constexpr std::uint64_t kParts = 1'000'000'000;
  return static_cast<double>(random_() % kParts) < times_a_day / kMinutesOfADay * kParts;
}

bool PlacementDay::change_nodes() {
  bool changed = false;
  auto left = std::count_if(fleet_.nodes.begin(), fleet_.nodes.end(), [](const cluster::PlacementNode& node) {
    return node.state == PlacementNodeState::in;
  });
  for (std::size_t i = 0; i < fleet_.nodes.size(); ++i) {
    PlacementNodeState& state = fleet_.nodes[i].state;
    const auto away = static_cast<std::uint64_t>(options_.most_minutes) -
                      static_cast<std::uint64_t>(options_.least_minutes) + 1;
    if (state == PlacementNodeState::in) {
      // The last one stays.
      if (!happens(options_.departures) || left == 1) continue;
      --left;
      const bool drains = random_() % 4 == 0;
      state = drains ? PlacementNodeState::draining : PlacementNodeState::gone;
      until_[i] = minute_ +
                  (drains ? kDraining : options_.least_minutes + static_cast<std::int64_t>(random_() % away));
    } else if (minute_ < until_[i]) {
      continue;
    } else if (state == PlacementNodeState::draining) {
      state = PlacementNodeState::gone;
      until_[i] = minute_ + options_.least_minutes + static_cast<std::int64_t>(random_() % away);
    } else {
      state = PlacementNodeState::in;
    }
    changed = true;
  }
  return changed;
}

PlacementMinute PlacementDay::next() {
  ++minute_;
  PlacementMinute minute;
  minute.changed_nodes = change_nodes();
  minute.removed.resize(fleet_.cameras.size());
  std::size_t left = 0;
  for (std::size_t i = 0; i < fleet_.cameras.size(); ++i) {
    minute.removed[i] = happens(options_.cameras);
    if (minute.removed[i]) continue;
    if (left != i) fleet_.cameras[left] = std::move(fleet_.cameras[i]);
    ++left;
  }
  const std::size_t removed = fleet_.cameras.size() - left;
  fleet_.cameras.resize(left);
  for (std::size_t i = 0; i < removed; ++i)
    fleet_.cameras.push_back(camera_of(cameras_++, fleet_options_.mixed_loads, random_));
  return minute;
}

}  // namespace vigil::bench
