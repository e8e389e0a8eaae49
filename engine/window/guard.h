// Tells whoever uses an engine's parts whether a device can still be used after an error.
#pragma once

#include <memory>

#include "engine/window/answerer.h"
#include "kernels/device/stream.h"

namespace vigil::window {

/// The same part, which computes on `stream`; an error after which nothing works there is a DeviceLost.
std::unique_ptr<VisionEncoder> guarded(std::unique_ptr<VisionEncoder> part, kernels::Stream stream);
std::unique_ptr<WindowPrefiller> guarded(std::unique_ptr<WindowPrefiller> part, kernels::Stream stream);
std::unique_ptr<AnswerGenerator> guarded(std::unique_ptr<AnswerGenerator> part, kernels::Stream stream);

}  // namespace vigil::window
