// One thread's work, one piece after the other: for what has to wait for answers and for times, and must not
// block.
#pragma once

#include <functional>

#include "base/duration.h"

namespace vigil::base {

/// Runs what it is given in the order of its times, one piece at a time. What is left when it ends is not
/// run.
class Loop {
 public:
  virtual ~Loop() = default;

  /// Soon. Thread-safe.
  virtual void post(std::function<void()> piece) = 0;

  /// After this time at the earliest. To be called by pieces of this loop alone.
  virtual void after(Duration time, std::function<void()> piece) = 0;
};

}  // namespace vigil::base
