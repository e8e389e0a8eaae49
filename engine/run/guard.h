// Tells whoever uses an engine's parts whether a device can still be used after an error.
#pragma once

#include <memory>
#include <vector>

#include "engine/run/passes.h"
#include "engine/run/token_mover.h"
#include "engine/run/vision_encoder.h"
#include "kernels/device/stream.h"

namespace vigil::run {

/// The same part, which computes on `streams`; an error after which nothing works on one of them is a
/// DeviceLost. After any other error nothing that was submitted is running any more.
std::unique_ptr<VisionEncoder> guarded(std::unique_ptr<VisionEncoder> part,
                                       std::vector<kernels::Stream> streams);
std::unique_ptr<Passes> guarded(std::unique_ptr<Passes> part, std::vector<kernels::Stream> streams);
std::unique_ptr<TokenMover> guarded(std::unique_ptr<TokenMover> part, std::vector<kernels::Stream> streams);

}  // namespace vigil::run
