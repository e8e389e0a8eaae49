// How the sources of a camera are opened, and when again.
#pragma once

#include "actors/camera/backoff.h"
#include "actors/camera/pulse.h"
#include "base/clock.h"
#include "config/settings.h"
#include "media/media.h"

namespace vigil::actors {

/// Until a live source is open, or its server has answered.
constexpr std::chrono::seconds kOpenTimeout{10};

/// Of one of the camera's inputs: its bounds and how it is shown; transport, verification and time-outs of
/// live sources; reading ends when the pulse is cancelled.
media::ReadOptions source_options(const config::CameraSettings& camera, const config::MaskedText& url,
                                  const Pulse& pulse);

/// When a source that failed for a reason of this kind is tried again.
base::Clock::TimePoint next_attempt(Backoff& backoff, media::Error::Kind kind, base::Clock::TimePoint now);

}  // namespace vigil::actors
