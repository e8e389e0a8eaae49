// A reader as it is, but for a record of how long each frame took.
#pragma once

#include <memory>

#include "base/clock.h"
#include "bench/stage_log.h"
#include "media/media.h"

namespace vigil::bench {

/// Forwards to the reader, which it owns, and adds to `log` what each frame took. As thread-safe as the
/// reader. Log and clock outlive what is returned.
std::unique_ptr<media::VideoReader> timed(std::unique_ptr<media::VideoReader> reader, StageLog& log,
                                          const base::Clock& clock);

}  // namespace vigil::bench
