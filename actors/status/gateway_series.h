// What a gateway of a fleet tells about events, as series of Prometheus beside those of its process.
#pragma once

#include <cstddef>
#include <cstdint>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>

#include "actors/status/metrics.h"

namespace vigil::actors {

/// Events by what became of them: on this gateway's disk; published, since all gateways have them, or another
/// one had; sent again; refused for their fence.
struct GatewayCounts {
  std::uint64_t stored = 0;
  std::uint64_t committed = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t refused = 0;
  friend bool operator==(const GatewayCounts&, const GatewayCounts&) = default;
};

/// The metrics `vigil_gateway_`, in the registry of others, at 0 from the start. Thread-safe.
class GatewaySeries {
 public:
  explicit GatewaySeries(Metrics& metrics);

  /// What has come since the last call.
  void add(const GatewayCounts& counts);
  /// Events that other gateways have and this one lacks, as far as it knows.
  void behind(std::uint64_t events);
  /// So many times a topic went on behind events that nobody has any more.
  void gaps(std::size_t count) { gaps_.Increment(static_cast<double>(count)); }

 private:
  prometheus::Family<prometheus::Counter>& events_;
  prometheus::Counter& stored_;
  prometheus::Counter& committed_;
  prometheus::Counter& duplicate_;
  prometheus::Counter& refused_;
  prometheus::Gauge& behind_;
  prometheus::Counter& gaps_;
};

}  // namespace vigil::actors
