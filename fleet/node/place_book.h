// Where the cameras of a node are computed, from one of its plans to the next.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/planning/plan.h"
#include "fleet/turns/window_turns.h"

namespace vigil::fleet {

/// A camera that the plan has a place for goes there. One that it refuses is nowhere. One that it has no
/// place for, and does not refuse, stays where it is as long as that answers: who plans may see less of the
/// fleet than its nodes do. Not thread-safe.
class PlaceBook {
 public:
  /// A device that is to let a camera go, which is not computed there any more.
  struct Left {
    std::string device;
    std::string camera;
    /// The stream of this device goes on with another tower.
    bool stream_stays = false;
    friend bool operator==(const Left&, const Left&) = default;
  };

  /// These are all cameras of the node from now on. What is left of them where they are not any more.
  std::vector<Left> follow(const std::map<std::string, cluster::PlannedCamera>& cameras);

  /// Of each of these cameras; without a device: nowhere yet, or not any more.
  const Places& places() const { return places_; }

 private:
  Places places_;
};

/// Why nothing is to compute it; empty: something is.
std::string refusal_of(const cluster::PlannedCamera& camera);

}  // namespace vigil::fleet
