// Shapes that config.json may have and the kernels of a device do not: told when a model is loaded, not by
// its first pass. What reads config.json refuses most of what no device has; a shape may come another way.
#pragma once

#include "engine/model/files/config.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// Throws ModelError, a line with the key and the limit, for a decoder that `ranks` devices of this kind
/// cannot compute together. That each has whole key heads is DecoderPart's to check.
void check_limits(const TextConfig& config, kernels::DeviceKind device, int ranks);

/// The same for a vision tower and one such device.
void check_limits(const VisionConfig& config, kernels::DeviceKind device);

}  // namespace vigil::model
