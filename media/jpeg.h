// Pictures as JPEG files, by FFmpeg's encoder.
#pragma once

#include <filesystem>

#include "media/media.h"

namespace vigil::media {

/// The file appears whole or not at all. Throws `Error` that names it and the reason.
void write_jpeg(const std::filesystem::path& path, const Image& image);

}  // namespace vigil::media
