// Decides who has which camera: what the one node that plans computes of what it sees.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/membership/plan.h"

namespace vigil::cluster {

/// A camera that the fleet is to watch.
struct WantedCamera {
  std::string name;
  /// Of reading it, and of computing its stream, in the units of the nodes' capacities.
  double camera_load = 1;
  double stream_load = 1;
  /// Of computing its stream, the part of the vision tower, which another node may have.
  double vision_load = 0.5;
};

struct PlannerOptions {
  /// By what part of its share a node may have more or less than that.
  double slack = 0.05;
  /// Cameras on their way from one living node to another, at most; and streams.
  std::size_t most_moves = 50;
};

struct PlanningInput {
  std::map<std::string, NodeRecord> nodes;
  FleetPlan plan;
  /// By name.
  std::vector<WantedCamera> cameras;
  base::Clock::WallTime wall;
};

/// What is to be written, in this order: what nodes are given first, so that no camera is ever without an
/// owner that was not before.
struct PlanChange {
  std::string node;
  /// Nothing: it has none any more, and its key goes.
  std::optional<NodePlan> plan;
};

struct Planning {
  std::vector<PlanChange> changes;
  /// Cameras that have no owner, or no stream, and why: a line each, by camera.
  std::map<std::string, std::string> unplaced;
  /// Cameras that are on their way.
  std::size_t handovers = 0;
};

/// Places cameras on camera nodes that are ready, and their streams on nodes that stream; keeps what is
/// where it can be (placement.h). A stream's node encodes its patches, too, if it has that role; otherwise
/// another one does, which may change without the stream. A camera whose node is gone is given to another at
/// once; one that could stay is handed over: its old owner keeps it, until the new one tells that it has
/// settled (`NodeRecord::settled`). A node that was started again is another owner: what the run before it
/// has left behind, here and elsewhere, is an owner's before it. A camera whose node is gone while there is
/// none to have it stays in that one's plan. Every new owner's fence is above all that
/// anybody has seen; if nodes have seen higher ones than the plan has, it is of a registry that was set back,
/// and every camera gets a new one. A pure function.
Planning plan_fleet(const PlanningInput& input, const PlannerOptions& options);

}  // namespace vigil::cluster
