// The pipeline's working parts as they are, but for a record of how long each piece of work took.
#pragma once

#include <memory>

#include "actors/bench/stage_log.h"
#include "config/clock.h"
#include "engine/window/answerer.h"
#include "media/media.h"

namespace vigil::actors {

/// Each forwards to `part`, which it borrows, and adds to `log` what a call of encode, ask or generate took.
/// As thread-safe as the part. Part, log and clock outlive what is returned.
std::shared_ptr<window::VisionEncoder> timed(window::VisionEncoder& part, StageLog& log,
                                             const config::Clock& clock);
std::shared_ptr<window::WindowPrefiller> timed(window::WindowPrefiller& part, StageLog& log,
                                               const config::Clock& clock);
std::shared_ptr<window::AnswerGenerator> timed(window::AnswerGenerator& part, StageLog& log,
                                               const config::Clock& clock);

/// The same for each frame of a reader, which it owns.
std::unique_ptr<media::VideoReader> timed(std::unique_ptr<media::VideoReader> reader, StageLog& log,
                                          const config::Clock& clock);

}  // namespace vigil::actors
