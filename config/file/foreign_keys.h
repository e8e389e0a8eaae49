// Keys that people bring along from other programs.
#pragma once

#include <optional>
#include <string_view>

namespace vigil::config {

/// What Vigil has in place of a key of Frigate's or of NVIDIA's VSS, as the rest of a sentence; nothing for
/// a key that is not known from there.
std::optional<std::string_view> in_place_of(std::string_view key);

}  // namespace vigil::config
