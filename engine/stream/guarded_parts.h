// The parts of a window's engine, guarded as engine/run/guard.h does it.
#pragma once

#include <memory>
#include <vector>

#include "engine/stream/answerer.h"
#include "kernels/device/stream.h"

namespace vigil::stream {

std::unique_ptr<WindowPrefiller> guarded(std::unique_ptr<WindowPrefiller> part,
                                         std::vector<kernels::Stream> streams);
std::unique_ptr<AnswerGenerator> guarded(std::unique_ptr<AnswerGenerator> part,
                                         std::vector<kernels::Stream> streams);

}  // namespace vigil::stream
