// One input as the parts of a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <zmq.hpp>

namespace vigil::testing {

/// What stands between the bytes 0xFF, which no text in UTF-8 has.
inline std::vector<zmq::message_t> parts_of(std::string_view bytes) {
  std::vector<zmq::message_t> parts;
  for (std::size_t begin = 0; begin <= bytes.size();) {
    const std::size_t end = std::min(bytes.find('\xFF', begin), bytes.size());
    parts.emplace_back(bytes.data() + begin, end - begin);
    begin = end + 1;
  }
  return parts;
}

}  // namespace vigil::testing
