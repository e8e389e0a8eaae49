// What of a camera is left where its fleet has no room for all of it, and what its stream takes: functions of
// its settings alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace vigil::config {

/// In units: 1 is a camera of the settings that hold where nothing is said, with one rule.
struct StreamLoad {
  double all = 1;
  /// What of it the vision tower takes.
  double vision = 0.5;
};

/// Pictures a second that go through the vision tower, and through the language model, and what the questions
/// take, over those of the standard camera. Of a picture is encoded, and becomes new in a window, what the
/// policy leaves of it: all (none), a half (scene, codecsight, reference, dtd) or a quarter (changes) as a
/// rule, and no more than `kept`. A window computes anew the share of its pictures that `refresh` says. A
/// question takes a tenth of a picture.
StreamLoad load_of(const CameraSettings& camera);

/// `step`, and those of the camera's `degrade` before it, are taken. A step that there is not changes
/// nothing.
void lower(CameraSettings& camera, std::string_view step);

struct Rung {
  std::string name;
  StreamLoad load;
};
/// What the camera can be lowered to, from more to less: its steps, but for those that save nothing, such as
/// pruning where the policy cannot rank. Empty: nothing.
std::vector<Rung> ladder_of(const CameraSettings& camera);

}  // namespace vigil::config
