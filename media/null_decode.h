// FFmpeg's decoder with its output thrown away: the limit that reading is compared with.
#pragma once

#include <cstdint>
#include <string>

namespace vigil::media {

/// Does what `ffmpeg -i FILE -an -f null -` does, without the program around it, in the calling thread for
/// `threads` 1. `vectors`: have the decoder export motion vectors. Returns the frames decoded. Throws `Error`
/// if there is nothing to decode.
std::uint64_t null_decode(const std::string& file, int threads, bool vectors);

}  // namespace vigil::media
