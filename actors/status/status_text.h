// The state of a running process as people read it.
#pragma once

#include <optional>
#include <string>

namespace vigil::actors {

/// A table of what `StatusBoard::json` told. Nothing for a text that is not that.
std::optional<std::string> status_text(const std::string& json);

}  // namespace vigil::actors
