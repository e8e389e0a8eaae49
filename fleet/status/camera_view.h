// One camera of a `FleetPicture`, put together. A part of fleet_picture.h.
#pragma once

#include <optional>
#include <string>

#include "fleet/status/fleet_picture.h"

namespace vigil::fleet {

struct CameraView {
  std::string camera;
  /// Null: no node has it.
  const PlannedPlace* place = nullptr;
  /// As its owner says; "unknown" if that says nothing, or if nobody wants it; "unplaced" if
  /// there is none.
  std::string state = {};
  /// In one line; empty if there is nothing to say.
  std::string reason = {};
  /// Since it entered that state; nothing: not known.
  std::optional<base::Duration> age = {};
  /// Why it has no owner, or nobody that computes it; empty if it has both.
  std::string why_unplaced = {};
};

CameraView view_of(const FleetPicture& picture, const std::string& camera);

}  // namespace vigil::fleet
