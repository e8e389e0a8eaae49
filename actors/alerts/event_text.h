// Events as people read them.
#pragma once

#include <optional>
#include <string>

namespace vigil::actors {

/// One line of an alert or a status event: time, camera, and what happened. Nothing if the text is no event
/// of Vigil. The event may come from anywhere: control characters are shown as '?', so that it cannot write
/// to a terminal as it likes.
std::optional<std::string> event_text(const std::string& body);

}  // namespace vigil::actors
