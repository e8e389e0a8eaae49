// What placing a fleet's cameras takes and moves, beside two simpler ways.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bench/figures.h"
#include "bench/placement_controls.h"
#include "bench/placement_day.h"
#include "cluster/placement/placement.h"

namespace vigil::bench {

struct PlacementBenchOptions {
  PlacementFleetOptions fleet;
  PlacementDayOptions day;
  double slack = 0.05;
  /// Of a call; in the day there is a call a minute.
  std::size_t most_moves = 100;
  int hours = 24;
  int runs = 5;
};

/// Not thread-safe.
class PlacementBench {
 public:
  /// The clock has to outlive it. At least two nodes, one run and one camera.
  PlacementBench(const PlacementBenchOptions& options, const base::Clock& clock);

  void run();

  /// A line for each figure and method: `about` is the same for all.
  void print(const nlohmann::json& about, std::ostream& out) const;

  /// Of placement.h, of the hash modulo the number of nodes, of first choices alone.
  const Figures& bounded() const { return bounded_; }
  const Figures& modulo() const { return modulo_; }
  const Figures& rendezvous() const { return rendezvous_; }

 private:
  struct Follower {
    std::unique_ptr<PlacementControl> control;
    Figures* figures;
    double most = 0;
    std::size_t moves = 0;
  };

  void fresh(PlacementFleet& fleet);
  void lose_a_node(PlacementFleet fleet, std::size_t node);
  void add_a_node(PlacementFleet fleet, std::size_t node);
  void day(PlacementFleet fleet);
  cluster::Placement placed(const PlacementFleet& fleet, std::size_t most_moves,
                            const char* figure = nullptr);
  std::vector<Follower> followers(const PlacementFleet& fleet);

  PlacementBenchOptions options_;
  const base::Clock& clock_;
  Figures bounded_, modulo_, rendezvous_;
};

}  // namespace vigil::bench
