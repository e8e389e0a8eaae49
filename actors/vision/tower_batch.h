// What goes to the thread of a vision tower, and what comes back.
#pragma once

#include <memory>
#include <vector>

#include "actors/messages/data.h"
#include "actors/vision/encode.h"

namespace vigil::actors {

/// Patches for one pass.
struct TowerBatch {
  std::vector<FramePatchPtr> patches;
};

/// Moved out of by whoever takes it.
struct TowerResult {
  Encoded encoded;
};

}  // namespace vigil::actors
