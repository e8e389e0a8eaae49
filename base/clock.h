// The clock that is injected everywhere.
#pragma once

#include <chrono>

namespace vigil::base {

/// Tells the time. Implementations are thread-safe.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::system_clock::time_point;

  virtual ~Clock() = default;

  /// Never goes back: for pacing, waiting and latencies.
  virtual TimePoint now() const = 0;

  /// The time of day in UTC, to be shown to people; it may jump, so nothing is decided by it.
  virtual WallTime wall() const = 0;
};

}  // namespace vigil::base
