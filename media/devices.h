// FFmpeg's devices: cameras of Video4Linux, screens, filters as sources.
#pragma once

#include <string>

namespace vigil::media {

/// Makes FFmpeg's devices known to av_find_input_format. Their library brings 80 others, which take 0.1 s of
/// each start, and only who names a device needs it, so the first call opens it. Thread-safe. Why it could
/// not be opened, or an empty text.
const std::string& know_devices();

}  // namespace vigil::media
