// How the vision tower of a model wants its frames, whatever engine runs it.
#pragma once

#include <memory>

#include "actors/camera/camera.h"
#include "engine/model/model_folder.h"
#include "engine/model/vision/preprocess.h"

namespace vigil::services {

/// Of a model's video frames. Throws model::ModelError for a folder without usable preprocessing.
std::shared_ptr<const model::Preprocessor> preprocessor_of(const model::ModelFolder& folder);

/// Throws model::ModelError for a folder without usable preprocessing.
actors::FrameShape frame_shape(const model::ModelFolder& folder);

}  // namespace vigil::services
