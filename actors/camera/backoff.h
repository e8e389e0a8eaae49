// Waiting times between attempts: exponential, bounded, with jitter so that a thousand cameras behind one
// switch do not come back at once.
#pragma once

#include <cstdint>
#include <random>

#include "config/settings.h"

namespace vigil::actors {

class Backoff {
 public:
  /// The same seed gives the same waiting times.
  Backoff(config::ReconnectSettings settings, std::uint64_t seed);

  /// The next waiting time: uniform between half of min * 2^attempts, bounded by max, and the whole of it.
  base::Duration next();

  /// As `next`, but at once around max: for what another attempt makes worse.
  base::Duration longest();

  /// After a success, the next waiting time is short again.
  void reset();

 private:
  config::ReconnectSettings settings_;
  base::Duration ceiling_;
  /// Small, as every camera has one.
  std::minstd_rand random_;
};

}  // namespace vigil::actors
