// Instants as people and machines write them: RFC 3339.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace vigil::base {

/// In UTC with milliseconds: "2026-08-01T10:00:12.480Z".
std::string format_rfc3339(Clock::WallTime time);

/// "2026-08-01T10:00:00Z", with a fraction of the second or without, in UTC or with an offset ("+02:00"),
/// from 1970 to 2261. A leap second is the second after it. Nothing if the text is anything else, or no such
/// day.
std::optional<Clock::WallTime> parse_rfc3339(std::string_view text);

}  // namespace vigil::base
