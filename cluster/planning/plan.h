// Who has which camera, as the fleet's planner wrote it into the registry.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/membership/node_record.h"

namespace vigil::cluster {

/// A rung that none of a ladder is called.
inline constexpr std::string_view kRefused = "refused";
/// What all of it is called.
inline constexpr std::string_view kFull = "full";

/// What a camera node has of a camera. Of two nodes that have it, the one with the higher fence is its owner.
struct PlannedCamera {
  Fence fence = 0;
  /// The nodes that compute its patches, its windows and its explanations; empty: none has room.
  std::string vision;
  std::string stream;
  std::string generate;
  /// When its time began, in milliseconds since 1970: every owner counts from there.
  std::int64_t origin_ms = 0;
  /// Its owner is to be that one, and this one goes on until it delivers; empty: it is this one.
  std::string hand_to;
  /// How much of it the fleet has room for: a name of admission's; empty: all of it; kRefused: nothing.
  std::string rung;
  /// Why it is here, and why its stream, and its vision tower where that is elsewhere, are there, in words.
  std::string why;
  std::string why_stream;
  std::string why_vision = {};
  /// And since it came to its rung.
  std::string why_rung = {};
  /// While the windows of a stream that has just moved fill: the node that goes on answering, and, if that is
  /// another one, the one that encodes for it; empty: none. If that is the stream's own node, only the tower
  /// has moved, and the former one encodes until the other does. What has moved has this number, from the
  /// same count as fences; 0: it never moved from a node that lives.
  std::string former_stream = {};
  std::string former_vision = {};
  Fence stream_fence = 0;
  friend bool operator==(const PlannedCamera&, const PlannedCamera&) = default;
};

/// Of one camera node, by names of cameras.
struct NodePlan {
  /// The highest fence of the fleet when this was written: a plan with a smaller one than a node has seen is
  /// of a registry that was set back.
  Fence fence = 0;
  std::map<std::string, PlannedCamera> cameras;
  /// The run of the node that it is for: another run of the same name is another owner. Empty: of any, as
  /// earlier builds write it.
  std::string incarnation = {};
  bool is_for(const std::string& run) const { return incarnation.empty() || incarnation == run; }
  friend bool operator==(const NodePlan&, const NodePlan&) = default;
};

/// Of all camera nodes, also of those that are gone.
using FleetPlan = std::map<std::string, NodePlan>;

/// JSON of one line.
std::string print(const NodePlan& plan);
/// Throws std::runtime_error: one line.
NodePlan parse_plan(std::string_view json);

/// The highest fence below which, and with which, every camera was tried: of a node's cameras, by fences.
Fence settled_up_to(const std::map<Fence, bool>& tried);

/// Who encodes for the camera's former stream; empty if it has none.
const std::string& former_vision_of(const PlannedCamera& camera);

/// Whoever has it with the highest fence; empty if nobody has.
std::string owner_of(const FleetPlan& plan, const std::string& camera);

}  // namespace vigil::cluster
