// The pipeline's working parts as they are, but for a record of how long each piece of work took.
#pragma once

#include <memory>

#include "bench/stage_log.h"
#include "base/clock.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/answerer.h"
#include "media/media.h"

namespace vigil::bench {

/// Each forwards to `part`, which it borrows, and adds to `log` what a call of encode, ask or generate took.
/// As thread-safe as the part. Part, log and clock outlive what is returned.
std::shared_ptr<run::VisionEncoder> timed(run::VisionEncoder& part, StageLog& log,
                                             const base::Clock& clock);
std::shared_ptr<stream::WindowPrefiller> timed(stream::WindowPrefiller& part, StageLog& log,
                                               const base::Clock& clock);
std::shared_ptr<stream::AnswerGenerator> timed(stream::AnswerGenerator& part, StageLog& log,
                                               const base::Clock& clock);

/// The same for each frame of a reader, which it owns.
std::unique_ptr<media::VideoReader> timed(std::unique_ptr<media::VideoReader> reader, StageLog& log,
                                          const base::Clock& clock);

}  // namespace vigil::bench
