// The fleet's page as people read it in a terminal.
#pragma once

#include <optional>
#include <string>

namespace vigil::fleet {

/// Of JSON as `print` of fleet_picture.h makes it; nothing if it is not that.
std::optional<std::string> fleet_text(const std::string& json);

}  // namespace vigil::fleet
