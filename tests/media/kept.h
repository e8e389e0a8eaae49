// Videos that are read as a camera does, with their packets kept.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "media/packet_history.h"

namespace vigil::media {

using History = std::shared_ptr<PacketHistory>;

inline History history(double seconds = 3600, std::size_t bytes = std::size_t{64} << 20) {
  return std::make_shared<PacketHistory>(PacketHistory::Limits{seconds, bytes});
}

/// Reads a source as a camera does, whose own time of the source's second 0 is `offset`.
inline void watch(const std::string& path, const History& kept, double offset = 0,
                  const std::function<void()>& each = nullptr) {
  ReadOptions options;
  options.fps = 2;
  options.motion = false;
  options.history = kept;
  const auto reader = VideoReader::open(path, options);
  while (const auto sample = reader->next()) {
    kept->anchor(sample->timestamp, offset + sample->seconds);
    if (each) each();
  }
}

inline std::string reason_of_failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace vigil::media
