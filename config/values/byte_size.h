// Amounts of memory and disk as people write them: "64MiB", "10GiB", "500GB".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::config {

struct ByteSize {
  std::uint64_t bytes = 0;
  friend bool operator==(const ByteSize&, const ByteSize&) = default;
};

constexpr ByteSize mebibytes(std::uint64_t count) {
  return {count << 20};
}
constexpr ByteSize gibibytes(std::uint64_t count) {
  return {count << 30};
}

/// A non-negative decimal number and a unit (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB). Nothing if the text is
/// anything else or does not fit.
std::optional<ByteSize> parse_byte_size(std::string_view text);

/// The shortest text that `parse_byte_size` reads back to the same value.
std::string format_byte_size(ByteSize value);

}  // namespace vigil::config
