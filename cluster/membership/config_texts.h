// Texts of configurations in the registry: in parts, since a value has a bound.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// One at least.
std::vector<std::string> parts_of(const std::string& text);
/// The key of a part, below the text's prefix; it tells how many parts there are.
std::string part_key(const std::string& prefix, std::size_t part, std::size_t parts);
/// The text that these keys hold; nothing if some of it is missing.
std::optional<std::string> whole_text(const std::vector<RegistryEntry>& entries, const std::string& prefix);

}  // namespace vigil::cluster
