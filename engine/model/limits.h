// Shapes that config.json may have and the kernels of a device do not: told when a model is loaded, not by
// its first pass.
#pragma once

#include "engine/model/config.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// Throws ModelError for a decoder that `ranks` devices of this kind cannot compute together.
void check_limits(const TextConfig& config, kernels::DeviceKind device, int ranks);

/// Throws ModelError for a vision tower that such a device cannot compute.
void check_limits(const VisionConfig& config, kernels::DeviceKind device);

}  // namespace vigil::model
