// How the sources of a camera are opened.
#pragma once

#include "actors/camera/pulse.h"
#include "config/settings.h"
#include "media/media.h"

namespace vigil::actors {

/// Transport and time-outs, of live sources; reading ends when the pulse is cancelled.
media::ReadOptions source_options(const config::CameraSettings& camera, const Pulse& pulse);

}  // namespace vigil::actors
