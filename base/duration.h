// Durations as people write them: "500ms", "40s", "2m", "1.5h", "7d".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::base {

using Duration = std::chrono::milliseconds;

/// A non-negative decimal number and a unit (ms, s, m, h, d). Nothing if the text is anything else or does
/// not fit.
std::optional<Duration> parse_duration(std::string_view text);

/// The shortest text that `parse_duration` reads back to the same value.
std::string format_duration(Duration value);

/// A moment of a video in seconds from its beginning, as people and players write it: "15", "15.5", "0:15",
/// "1:02:03.5", "90s", "1m30s". Nothing if the text is anything else, or more than a thousand years.
std::optional<double> parse_moment(std::string_view text);

/// As a number of seconds.
constexpr double seconds(Duration value) {
  return static_cast<double>(value.count()) / 1000.0;
}

}  // namespace vigil::base
