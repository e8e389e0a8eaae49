// Which keys name what somebody may look at.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "config/file/load.h"

namespace vigil::config {

/// What a key of a plain value names, by its path; nothing: nothing of that kind. Of cameras' videos more is
/// known than their keys.
inline std::optional<Named> named_by(std::string_view path) {
  // Of this name, all others are keys of certificates.
  if (path == "memory.key_file") return Named::memory_key;
  const std::string_view key = path.substr(path.rfind('.') + 1);
  constexpr std::array<std::pair<std::string_view, Named>, 8> kNamed = {{
      {"model", Named::model},
      {"secret_key_file", Named::secret_key},
      {"ca_file", Named::certificate},
      {"cert_file", Named::certificate},
      {"key_file", Named::private_key},
      {"tls_dir", Named::node_certificates},
      {"device", Named::device},
      {"decode_device", Named::decode_device},
  }};
  for (const auto& [name, what] : kNamed)
    if (name == key) return what;
  return std::nullopt;
}

}  // namespace vigil::config
