// What others do in place of cluster/placement/placement.h: the controls of `vigil bench placement`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/placement_day.h"

namespace vigil::bench {

/// Without bounds or weights of loads; cameras of nodes that are away, or drain, go elsewhere at once. Not
/// thread-safe.
class PlacementControl {
 public:
  virtual ~PlacementControl() = default;

  /// Places all cameras of a fleet anew.
  void start(const PlacementFleet& fleet);
  /// The same fleet a minute later. How many cameras moved, without those that came.
  std::size_t follow(const PlacementFleet& fleet, const PlacementMinute& minute);

  /// Of each camera, its node.
  const std::vector<std::size_t>& nodes() const { return nodes_; }

 protected:
  virtual void change_nodes(const PlacementFleet& fleet) = 0;
  /// The node of one camera, by its hash. At least one node is in.
  virtual std::size_t node_of(std::uint64_t camera) const = 0;
  /// The same, of one that was on `before` until the nodes changed.
  virtual std::size_t node_after(std::uint64_t camera, std::size_t /*before*/) const {
    return node_of(camera);
  }

 private:
  std::vector<std::uint64_t> hashes_;
  std::vector<std::size_t> nodes_;
};

/// The hash modulo the number of nodes.
std::unique_ptr<PlacementControl> modulo_control();
/// The first choice by rendezvous hashing.
std::unique_ptr<PlacementControl> rendezvous_control(const PlacementFleet& fleet);

}  // namespace vigil::bench
