// How often something may be done.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace vigil::cluster {

/// So many at once, and so many more each second (a token bucket). Not thread-safe.
class Pace {
 public:
  Pace(double at_once, double per_second, base::Clock::TimePoint now)
      : at_once_(at_once), per_second_(per_second), left_(at_once), at_(now) {}

  bool has_one(base::Clock::TimePoint now) {
    left_ = std::min(at_once_, left_ + std::chrono::duration<double>(now - at_).count() * per_second_);
    at_ = now;
    return left_ >= 1;
  }
  bool is_full(base::Clock::TimePoint now) { return has_one(now) && left_ >= at_once_; }
  void take() { left_ -= 1; }

 private:
  double at_once_;
  double per_second_;
  double left_;
  base::Clock::TimePoint at_;
};

}  // namespace vigil::cluster
