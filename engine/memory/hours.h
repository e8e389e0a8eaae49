// Hours of wall time, by which pages are kept together and go together.
#pragma once

#include <cstdint>

namespace vigil::memory {

/// Which hour (UTC) since the epoch of Unix a moment lies in; both may be before it.
constexpr std::int64_t hour_at(std::int64_t nanoseconds) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  return nanoseconds / kHour - (nanoseconds % kHour < 0 ? 1 : 0);
}

}  // namespace vigil::memory
