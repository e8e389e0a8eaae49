// What takes patches of a camera node's cameras, as its router calls it.
#pragma once

#include <string>

namespace vigil::fleet {

/// Stands before the node that encodes and the one that has the stream.
constexpr char kBetweenStages = '>';

/// The node that computes, or the two that do. Empty while there is one missing.
inline std::string device_of(const std::string& vision, const std::string& stream) {
  if (vision.empty() || stream.empty()) return {};
  return vision == stream ? stream : vision + kBetweenStages + stream;
}

/// The node of it that has the stream.
inline std::string stream_of(const std::string& device) {
  const auto at = device.find(kBetweenStages);
  return at == std::string::npos ? device : device.substr(at + 1);
}

}  // namespace vigil::fleet
