// What a camera's file costs before any model sees it.
#pragma once

#include <optional>

#include "config/settings.h"
#include "media/media.h"

namespace vigil::bench {

/// What decoding and sampling a file costs, alone and in turns with FFmpeg's null decode of it.
struct ReadCost {
  double stream_seconds = 0;
  /// Processor seconds for a second of video.
  double read = 0;
  double null_decode = 0;
};

/// Reads the camera's file several times, in the calling thread. `size`: of the frames; as they are if left
/// out. Throws media::Error for a file that cannot be read or has no length.
ReadCost read_cost(const config::CameraSettings& camera, std::optional<media::Size> size);

}  // namespace vigil::bench
