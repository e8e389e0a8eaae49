// Hours of wall time, by which pages are kept together and go together.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/history/page_info.h"

namespace vigil::memory {

/// Which hour (UTC) since the epoch of Unix a moment lies in; both may be before it.
constexpr std::int64_t hour_at(std::int64_t nanoseconds) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  return nanoseconds / kHour - (nanoseconds % kHour < 0 ? 1 : 0);
}

inline base::Clock::WallTime wall_time(std::int64_t nanoseconds) {
  return base::Clock::WallTime(
      std::chrono::duration_cast<base::Clock::WallTime::duration>(std::chrono::nanoseconds(nanoseconds)));
}

inline void widen(std::optional<history::WallRange>& wall, const history::WallRange& by) {
  wall = wall ? history::WallRange{std::min(wall->from, by.from), std::max(wall->to, by.to)} : by;
}

inline std::int64_t nanoseconds(base::Duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

/// Since the epoch.
inline std::int64_t nanoseconds(base::Clock::WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace vigil::memory
