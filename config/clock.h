// The clock that is injected everywhere. Its interface lies in this room because it is the one that both
// `actors/`, which read the time, and `cluster/`, which implements it, may know.
#pragma once

#include <chrono>

namespace vigil::config {

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

}  // namespace vigil::config
