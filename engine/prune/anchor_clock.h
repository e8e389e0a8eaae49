// When the whole picture is shown again, whatever changed.
#pragma once

#include <cmath>
#include <limits>

namespace vigil::prune {

/// Comes once in every `interval` seconds of the camera's time, at its own place in it: many cameras that
/// began at the same time spread over the interval. Not thread-safe.
class AnchorClock {
 public:
  /// `phase`: from 0 to below 1.
  AnchorClock(double interval, double phase) : interval_(interval), phase_(phase) {}

  /// Whether the patch of this time is an anchor; asked once for each, in order. The first always is.
  bool comes(double seconds) {
    const double turn = std::floor(seconds / interval_ + phase_);
    const bool comes = turn > last_;
    if (comes) last_ = turn;
    return comes;
  }

  double interval() const { return interval_; }

 private:
  double interval_;
  double phase_;
  double last_ = -std::numeric_limits<double>::infinity();
};

}  // namespace vigil::prune
