#include "actors/status/maker_series.h"

namespace vigil::actors {

MakerSeries::MakerSeries(Metrics& metrics)
    : held_(prometheus::BuildGauge()
                .Name("vigil_events_held")
                .Help("Whether events of this node wait for a gateway that does not answer")
                .Register(*metrics.registry())
                .Add({})) {}

void MakerSeries::held(bool are_held) {
  held_.Set(are_held ? 1 : 0);
}

}  // namespace vigil::actors
