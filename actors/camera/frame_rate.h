// Frames a second over the last seconds.
#pragma once

#include <cstddef>
#include <deque>

#include "base/clock.h"

namespace vigil::actors {

class FrameRate {
 public:
  using TimePoint = base::Clock::TimePoint;

  void count(TimePoint now) {
    times_.push_back(now);
    while (now - times_.front() > kSpan) times_.pop_front();
  }

  /// Of what was counted within the span; 0 before the second frame.
  double per_second() const {
    if (times_.size() < 2) return 0;
    const double span = std::chrono::duration<double>(times_.back() - times_.front()).count();
    return span > 0 ? static_cast<double>(times_.size() - 1) / span : 0;
  }

 private:
  static constexpr std::chrono::seconds kSpan{10};
  std::deque<TimePoint> times_;
};

}  // namespace vigil::actors
