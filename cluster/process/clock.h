// The machine's own clocks behind the interface that is injected everywhere.
#pragma once

#include "base/clock.h"

namespace vigil::cluster {

/// Thread-safe.
class SystemClock final : public base::Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
};

}  // namespace vigil::cluster
