#include "base/duration.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace vigil::base {
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

/// A decimal number without a sign at the beginning of `text`, which is left with what follows it.
std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

/// "M:S" or "H:M:S": whole numbers, but for the seconds; 60 of one are one of the next.
std::optional<double> parse_clock(std::string_view text) {
  double total = 0;
  for (int part = 1;; ++part) {
    const std::size_t colon = text.find(':');
    std::string_view field = text.substr(0, colon);
    const bool last = colon == text.npos;
    const bool whole = field.find('.') == field.npos;
    const auto number = take_number(field);
    if (!number || !field.empty() || (!last && !whole) || (part > 1 && *number >= 60)) return std::nullopt;
    total = 60 * total + *number;
    if (last) return part <= 3 ? std::optional(total) : std::nullopt;
    text.remove_prefix(colon + 1);
  }
}

/// "1h2m3.5s": each unit once, the largest first.
std::optional<double> parse_units(std::string_view text) {
  double total = 0;
  std::size_t units = kUnits.size();
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const std::string_view unit = text.substr(0, text.find_first_of("0123456789."));
    std::size_t at = 0;
    while (at < units && kUnits[at].first != unit) ++at;
    if (at == units) return std::nullopt;
    units = at;
    total += *number * static_cast<double>(kUnits[at].second) / 1000;
    text.remove_prefix(unit.size());
  }
  return total;
}

}  // namespace

std::optional<double> parse_moment(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::optional<double> seconds;
  if (text.find(':') != text.npos) {
    seconds = parse_clock(text);
  } else if (text.find_first_not_of("0123456789.") == text.npos) {
    seconds = take_number(text);
    if (!text.empty()) return std::nullopt;
  } else {
    seconds = parse_units(text);
  }
  return seconds && *seconds * 1000 <= kMaxMilliseconds ? seconds : std::nullopt;
}

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

}  // namespace vigil::base
