// Pictures as PNG files, by FFmpeg's encoder.
#pragma once

#include <string>

#include "media/media.h"

namespace vigil::media {

/// Throws `Error` that names the file and the reason.
void write_png(const std::string& path, const Image& image);

}  // namespace vigil::media
