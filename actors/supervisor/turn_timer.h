// When the sources are looked at again, by messages that cannot be called back.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/duration.h"

namespace vigil::actors {

/// Of the timers that were set, the last one counts. Those before it still ring, which is heard and leads to
/// nothing: else each would set one more. Not thread-safe.
class TurnTimer {
 public:
  using TimePoint = base::Clock::TimePoint;

  /// Between two turns, as thousands of sources are due at thousands of times.
  static constexpr base::Duration kLeast = std::chrono::milliseconds(10);
  /// One that rings before anything is due costs little; one that does not count any more is gone so soon.
  static constexpr base::Duration kLongest = std::chrono::seconds(1);

  struct Timer {
    std::uint64_t number = 0;
    base::Duration delay{0};
  };

  /// There will be something to do at `wake`: the timer to set, which rings by its number; nothing if the one
  /// that is set rings in time.
  std::optional<Timer> await(TimePoint wake, TimePoint now) {
    const TimePoint at = std::clamp(wake, now + kLeast, now + kLongest);
    if (at_ && *at_ > now && *at_ <= at + kLeast) return std::nullopt;
    at_ = at;
    return Timer{++number_, std::chrono::ceil<base::Duration>(at - now)};
  }

  /// Whether it is the one that counts: then none is set any more.
  bool rings(std::uint64_t number) {
    if (number != number_ || !at_) return false;
    at_.reset();
    return true;
  }

 private:
  std::optional<TimePoint> at_;
  std::uint64_t number_ = 0;
};

}  // namespace vigil::actors
