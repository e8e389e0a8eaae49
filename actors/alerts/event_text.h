// Events as people read them.
#pragma once

#include <optional>
#include <string>

namespace vigil::actors {

/// One line of an alert or a status event: time, camera, and what happened. Nothing if the text is no event
/// of Vigil. The event may come from anywhere: what writes to a terminal as it likes is shown as '?'.
std::optional<std::string> event_text(const std::string& body);

/// An event as one line of JSON, as it is if it is one.
std::string event_line(const std::string& body);

}  // namespace vigil::actors
