// What a node of a fleet tells about erasures that the whole fleet has to do, as a series of Prometheus
// beside those of its process.
#pragma once

#include <cstddef>

#include <prometheus/gauge.h>

#include "actors/status/metrics.h"

namespace vigil::actors {

/// The metric `vigil_past_erasures_waiting`, in the registry of others, at 0 from the start. Thread-safe.
class ErasureSeries {
 public:
  explicit ErasureSeries(Metrics& metrics);

  /// Erasures that some node has yet to do, as far as this one knows.
  void waiting(std::size_t count);

 private:
  prometheus::Gauge& waiting_;
};

}  // namespace vigil::actors
