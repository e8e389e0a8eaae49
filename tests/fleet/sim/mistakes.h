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
  /// Nobody notices that the registry was set back.
  bool registry_is_trusted = false;
  /// A node keeps what it has asked others after they have answered: what waits has no bound.
  bool requests_are_kept = false;

  // Of nodes of actors.
  /// Gateways answer no claim of a series that another node has claimed before: its new owner makes events
  /// that nobody is told.
  bool no_answer_to_a_new_owner = false;
  /// What gateways say to a claim ends an event too far, and nobody has that one.
  bool books_end_too_far = false;
  /// A write is answered before it is kept.
  bool disk_answers_too_early = false;
  /// A write that fails halfway leaves its end, and not its beginning, and nobody is told.
  bool disk_tears_writes = false;
};

}  // namespace vigil::fleet::sim
