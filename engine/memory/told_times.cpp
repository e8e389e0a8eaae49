#include "engine/memory/told_times.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/timestamp.h"

namespace vigil::memory {
namespace {

constexpr std::string_view kSecond = "second ";

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool is_at(std::string_view text, std::size_t at) {
  if (at > 0 && is_word(text[at - 1])) return false;
  for (std::size_t i = 0; i < kSecond.size(); ++i) {
    if (at + i >= text.size()) return false;
    if (std::tolower(static_cast<unsigned char>(text[at + i])) != kSecond[i]) return false;
  }
  return true;
}

std::string rfc3339(std::int64_t nanoseconds) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds(nanoseconds));
  std::string text = base::format_rfc3339(
      base::Clock::WallTime(std::chrono::duration_cast<base::Clock::WallTime::duration>(whole)));
  if (const std::size_t point = text.find('.'); point != std::string::npos)
    text.erase(point, text.find('Z') - point);
  return text;
}

}  // namespace

std::int64_t wall_of_second(double second, std::span<const ShownPatch> patches) {
  const ShownPatch* shown = &patches.front();
  for (const ShownPatch& each : patches)
    if (each.second <= second) shown = &each;
  const double within =
      std::clamp((second - shown->second) * 1e9, 0.0, static_cast<double>(shown->wall.to - shown->wall.from));
  return shown->wall.from + std::llround(within);
}

std::string in_wall_time(std::string_view text, std::span<const ShownPatch> patches) {
  std::string told;
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_at(text, at)) {
      const char* const begin = text.data() + at + kSecond.size();
      const char* const last = text.data() + text.size();
      double second = 0;
      const auto [end, error] = std::from_chars(begin, last, second, std::chars_format::fixed);
      // Neither "second information", which begins with a number for C, nor "second 2nd".
      const bool is_number = error == std::errc() && is_digit(*begin) && (end == last || !is_word(*end));
      if (is_number) {
        told += rfc3339(wall_of_second(second, patches));
        at = static_cast<std::size_t>(end - text.data());
        // "second 12." ends a sentence.
        if (end[-1] == '.') told += '.';
        continue;
      }
    }
    told += text[at++];
  }
  return told;
}

}  // namespace vigil::memory
