// A fleet of nodes and cameras, and a day on which they come and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cluster/placement/placement.h"

namespace vigil::bench {

struct PlacementFleetOptions {
  std::size_t cameras = 100'000;
  std::size_t nodes = 1'000;
  /// Loads from 0.5 to 2 in place of 1.
  bool mixed_loads = false;
  /// Nodes of weight 1, 2 and 3 in turn.
  bool mixed_weights = false;
  std::uint64_t seed = 1;
};

/// Nodes have twice the capacity of their share. Cameras are nowhere yet; both are in the order of their
/// names.
struct PlacementFleet {
  std::vector<cluster::PlacementNode> nodes;
  std::vector<cluster::PlacementItem> cameras;
};

PlacementFleet placement_fleet(const PlacementFleetOptions& options);

struct PlacementDayOptions {
  /// Of a node: how often it goes in a day, and for how many minutes. Every fourth time it drains first.
  double departures = 0.05;
  int least_minutes = 5, most_minutes = 60;
  /// Cameras that go in a day, as a share of all, and as many that come.
  double cameras = 0.1;
};

/// What a minute changed.
struct PlacementMinute {
  /// Of the cameras that were there before it: which went. Those that came are at the end.
  std::vector<bool> removed;
  bool changed_nodes = false;
};

/// Changes a fleet minute by minute, in the same way for the same seed. Not thread-safe.
class PlacementDay {
 public:
  /// The fleet has to outlive it.
  PlacementDay(PlacementFleet& fleet, const PlacementFleetOptions& fleet_options,
               const PlacementDayOptions& options);

  PlacementMinute next();

 private:
  bool happens(double times_a_day);
  bool change_nodes();

  PlacementFleet& fleet_;
  PlacementFleetOptions fleet_options_;
  PlacementDayOptions options_;
  std::mt19937_64 random_;
  std::int64_t minute_ = 0;
  /// Of a node that is away: when it is back; of one that drains: when it goes. 0: neither.
  std::vector<std::int64_t> until_;
  /// Since the beginning.
  std::size_t cameras_ = 0;
};

}  // namespace vigil::bench
