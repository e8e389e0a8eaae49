// Decides who has which camera: what the one node that plans computes of what it sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/planning/plan.h"

namespace vigil::cluster {

/// What a camera's stream is, of which the fleet has no room for all.
struct StreamRung {
  /// Of its ladder the only one of this name; neither empty nor kRefused.
  std::string name;
  /// As of `WantedCamera`; no more than the one before.
  double stream_load = 1;
  double vision_load = 0.5;
  friend bool operator==(const StreamRung&, const StreamRung&) = default;
};

/// A camera that the fleet is to watch.
struct WantedCamera {
  std::string name;
  /// Of computing its stream, in the units of the nodes' capacities.
  double stream_load = 1;
  /// Of computing its stream, the part of the vision tower, which another node may have.
  double vision_load = 0.5;
  /// To what its stream is lowered, rung by rung, where there is no room for all (admission.h); null:
  /// nothing.
  std::shared_ptr<const std::vector<StreamRung>> less = nullptr;
  /// Those of a smaller one are lowered and refused first; of an equal one, those that were added last.
  std::int64_t priority = 0;
};

struct PlannerOptions {
  /// By what part of its share a node may have more or less than that.
  double slack = 0.05;
  /// Cameras on their way from one living node to another, at most; and streams.
  std::size_t most_moves = 50;
  /// Of one node, in loads, whatever it says itself: its plan is one value of the registry, and that has an
  /// end.
  double most_cameras_of_a_node = 2000;
  /// What of the streams' capacity has to be free before anything is raised or admitted again.
  double margin = 0.05;
};

struct PlanningInput {
  std::map<std::string, NodeRecord> nodes;
  /// Of each node: every camera that it was given with this fence or a lower one delivers, or was tried in
  /// vain. Not there: none.
  std::map<std::string, Fence> settled;
  FleetPlan plan;
  /// By name.
  std::vector<WantedCamera> cameras;
  base::Clock::WallTime wall;
  /// Of each camera node: the streams, by their fences, that need their former no more: their windows are
  /// full where they have moved to, or the tower encodes that they have now, or there is no use in waiting.
  /// Not there: of a build that does not tell; its streams move without a former.
  std::map<std::string, std::set<Fence>> filled = {};
  /// Of each camera node: fences of its cameras that are refused, and the higher ones, if any, that were seen
  /// of them.
  std::map<std::string, std::set<Fence>> refused = {};
  /// Since when there have been cameras that no plan has any more, as when somebody has deleted it: as
  /// `PlannedCamera::origin_ms`.
  std::map<std::string, std::int64_t> origins = {};
  /// What is given is above it: whoever plans has sent a plan with such fences, and cannot know whether it is
  /// written, or will be.
  Fence least_fence = 0;
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
  /// Streams that have a former.
  std::size_t fillings = 0;
  /// Cameras of whose streams there is less, and of which there is nothing, for want of room.
  std::size_t degraded = 0;
  std::size_t refused = 0;
};

/// Places cameras on camera nodes that are ready, and their streams on nodes that stream; keeps what is
/// where it can be (placement.h). A stream's node encodes its patches, too, if it has that role; otherwise
/// another one does, which may change without the stream: a former one that lives encodes until the other
/// can. A stream that leaves a node that lives is answered there until its windows are full
/// (`PlanningInput::filled`), if its patches can go both ways: one tower encodes for one stream of a camera,
/// so that another one does for the next, as long as one has room. Where the
/// nodes that stream, or that encode for them, and are ready have no room for all of it, streams are lowered,
/// and at last refused, until they have (admission.h). Nothing is given to, or left with, a node to which
/// there is no way, as long as another one can have it (reachability.h).
///
/// A camera whose node is gone is given to another at once; one that could stay is handed over: its old owner
/// keeps it, until the new one tells that it has settled (`PlanningInput::settled`). A node that was started
/// again is another owner: what the run before it has left behind, here and elsewhere, is an owner's before
/// it. A camera whose node is gone while there is none to have it stays in that one's plan. Every new owner's
/// fence is above all that anybody has seen; if nodes have seen higher ones than the plan has, it is of a
/// registry that was set back, and every camera gets a new one. So does a camera whose owner is refused by
/// the fence that it has: of a registry that was set back, and whose plans have gone on since. A pure
/// function.
Planning plan_fleet(const PlanningInput& input, const PlannerOptions& options);

}  // namespace vigil::cluster
