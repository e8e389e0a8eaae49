// Whether, and when, what failed is started again.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace vigil::actors {

/// The engine of a device is made again at once, then after longer waits; not a fourth time unless it has
/// worked for a while in between, since what fails again and again is better told than repeated. Not
/// thread-safe.
class Recovery {
 public:
  using TimePoint = base::Clock::TimePoint;

  /// What works for so long has recovered.
  static constexpr std::chrono::minutes kSteady{10};

  /// It failed, or could not be made: when to try again; nothing if not at all.
  std::optional<TimePoint> failed(TimePoint now);

  void works(TimePoint now) { since_ = now; }

 private:
  std::size_t failures_ = 0;
  std::optional<TimePoint> since_;
};

}  // namespace vigil::actors
