// How the vision tower of a model wants its frames, whatever engine runs it.
#pragma once

#include <memory>

#include "actors/camera/camera.h"
#include "engine/model/model_folder.h"

namespace vigil::services {

/// Throws model::ModelError for a folder without usable preprocessing.
actors::FrameShape frame_shape(const model::ModelFolder& folder);

}  // namespace vigil::services
