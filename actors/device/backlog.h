// Whether a device is behind with its work.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/duration.h"

namespace vigil::actors {

/// It is for a while after something came out late: cameras send less meanwhile of what saves nothing by
/// being chosen from (`PruningPolicy::spare`). One that must lose nothing is late by its own will. Not
/// thread-safe.
class Backlog {
 public:
  /// A patch was encoded by then.
  void encoded(base::Clock::TimePoint captured, base::Clock::TimePoint now);
  /// A window of a camera with such a stride was answered, which was asked then.
  void answered(base::Clock::TimePoint asked, base::Duration stride, base::Clock::TimePoint now);
  /// A window was not, since the next one was there before.
  void overtaken(base::Clock::TimePoint now) { last_ = now; }

  bool is_behind(base::Clock::TimePoint now) const { return last_ && now - *last_ < kMemory; }

  /// A patch is late when it was captured longer ago than that, a window when it was asked half a stride ago.
  static constexpr base::Duration kPatience = std::chrono::seconds(2);
  /// So that it does not change with every patch.
  static constexpr base::Duration kMemory = std::chrono::seconds(30);

 private:
  std::optional<base::Clock::TimePoint> last_;
};

}  // namespace vigil::actors
