// Mistakes that a simulation is to find: each is made by a part that stands in for the right one.
#pragma once

namespace vigil::fleet::sim {

struct Mistakes {
  /// The registry makes every change, whatever its conditions say.
  bool registry_ignores_conditions = false;
  /// A camera that moves gets the fence that it had.
  bool planner_gives_old_fences = false;
  /// What is planned is written only as long as it takes nobody anything: a camera's dead owner keeps it.
  bool planner_leaves_cameras_to_the_dead = false;
  /// Every camera is let in, whatever its fence.
  bool dock_ignores_fences = false;
  /// A node's clock stands half of the time when its lease is looked at.
  bool member_believes_too_long = false;
  /// A connection does not keep its order.
  bool network_reorders = false;
  /// A node that was cut off forgets what it has.
  bool camera_ends_when_cut_off = false;

  // Of nodes of actors.
  /// A number of a topic is passed over.
  bool publisher_skips = false;
  /// A write is answered before it is kept.
  bool disk_answers_too_early = false;
};

}  // namespace vigil::fleet::sim
