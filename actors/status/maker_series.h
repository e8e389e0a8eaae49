// What a node of a fleet that makes events tells about them, as series of Prometheus beside those of its
// process.
#pragma once

#include <prometheus/gauge.h>

#include "actors/status/metrics.h"

namespace vigil::actors {

/// The metrics `vigil_events_`, in the registry of others, at 0 from the start. Thread-safe.
class MakerSeries {
 public:
  explicit MakerSeries(Metrics& metrics);

  /// Whether events wait for a gateway that does not answer.
  void held(bool are_held);

 private:
  prometheus::Gauge& held_;
};

}  // namespace vigil::actors
