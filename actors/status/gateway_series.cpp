#include "actors/status/gateway_series.h"

namespace vigil::actors {

GatewaySeries::GatewaySeries(Metrics& metrics)
    : events_(prometheus::BuildCounter()
                  .Name("vigil_gateway_events_total")
                  .Help("Events of the fleet that came to this gateway, by what became of them")
                  .Register(*metrics.registry())),
      stored_(events_.Add({{"outcome", "stored"}})),
      committed_(events_.Add({{"outcome", "committed"}})),
      duplicate_(events_.Add({{"outcome", "duplicate"}})),
      refused_(events_.Add({{"outcome", "refused"}})),
      behind_(prometheus::BuildGauge()
                  .Name("vigil_gateway_behind_events")
                  .Help("Events that other gateways have and this one lacks, while it does not serve")
                  .Register(*metrics.registry())
                  .Add({})),
      gaps_(prometheus::BuildCounter()
                .Name("vigil_gateway_gaps_total")
                .Help("Times that a topic went on behind events that nobody has any more")
                .Register(*metrics.registry())
                .Add({})) {}

void GatewaySeries::add(const GatewayCounts& counts) {
  stored_.Increment(static_cast<double>(counts.stored));
  committed_.Increment(static_cast<double>(counts.committed));
  duplicate_.Increment(static_cast<double>(counts.duplicate));
  refused_.Increment(static_cast<double>(counts.refused));
}

void GatewaySeries::behind(std::uint64_t events) {
  behind_.Set(static_cast<double>(events));
}

}  // namespace vigil::actors
