#include "config/values/byte_size.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace vigil::config {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 9> kUnits = {{
    {"B", 1},
    {"kB", 1000},
    {"KiB", std::uint64_t{1} << 10},
    {"MB", 1'000'000},
    {"MiB", std::uint64_t{1} << 20},
    {"GB", 1'000'000'000},
    {"GiB", std::uint64_t{1} << 30},
    {"TB", 1'000'000'000'000},
    {"TiB", std::uint64_t{1} << 40},
}};

// A pebibyte: beyond every use, and exact in a double.
constexpr double kMax = 0x1p50;

}  // namespace

std::optional<ByteSize> parse_byte_size(std::string_view text) {
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  for (const auto& [name, bytes] : kUnits) {
    if (unit != name) continue;
    const double value = number * static_cast<double>(bytes);
    if (value > kMax) return std::nullopt;
    return ByteSize{static_cast<std::uint64_t>(std::llround(value))};
  }
  return std::nullopt;
}

std::string format_byte_size(ByteSize value) {
  std::string best = std::to_string(value.bytes) + 'B';
  if (value.bytes == 0) return best;
  for (const auto& [name, bytes] : kUnits) {
    if (value.bytes % bytes != 0) continue;
    const std::string text = std::to_string(value.bytes / bytes) + std::string(name);
    if (text.size() <= best.size()) best = text;
  }
  return best;
}

}  // namespace vigil::config
