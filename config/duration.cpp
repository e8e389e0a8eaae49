#include "config/duration.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace vigil::config {
namespace {

constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits = {{
    {"ms", 1},
    {"s", 1000},
    {"m", 60'000},
    {"h", 3'600'000},
    {"d", 86'400'000},
}};

// A thousand years: far beyond every use, and far below overflow.
constexpr double kMaxMilliseconds = 3.2e13;

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  for (const auto& [name, milliseconds] : kUnits) {
    if (unit != name) continue;
    const double value = number * static_cast<double>(milliseconds);
    if (value > kMaxMilliseconds) return std::nullopt;
    return Duration(std::llround(value));
  }
  return std::nullopt;
}

std::string format_duration(Duration value) {
  const std::int64_t count = value.count();
  if (count == 0) return "0s";
  std::string_view best = "ms";
  std::int64_t best_unit = 1;
  for (const auto& [name, milliseconds] : kUnits) {
    if (count % milliseconds == 0) {
      best = name;
      best_unit = milliseconds;
    }
  }
  return std::to_string(count / best_unit) + std::string(best);
}

}  // namespace vigil::config
