// Any bytes as a video file: either one line of error, or samples in order, within the memory that is
// allowed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "media/media.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vigil::media;
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  ReadOptions options;
  options.fps = 10;
  options.decoder_memory = std::size_t{64} << 20;
  options.size = [](Size) { return Size{32, 32}; };
  options.motion = size % 2 == 0;
  options.residual = size % 4 == 0;
  // What is slow to decode is no fault of the reader.
  constexpr int kMostSamples = 50;
  try {
    const auto reader = VideoReader::open(name, options);
    double last = -1;
    for (int i = 0; i < kMostSamples; ++i) {
      const auto sample = reader->next();
      if (!sample) break;
      if (!(sample->seconds >= last) || sample->image->rgb.size() != std::size_t{32} * 32 * 3) std::abort();
      last = sample->seconds;
    }
  } catch (const Error& error) {
    if (std::strchr(error.what(), '\n') != nullptr ||
        std::strncmp(error.what(), name.c_str(), name.size()) != 0)
      std::abort();
  }
  close(file);
  return 0;
}
