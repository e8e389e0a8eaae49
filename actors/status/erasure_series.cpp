#include "actors/status/erasure_series.h"

namespace vigil::actors {

ErasureSeries::ErasureSeries(Metrics& metrics)
    : waiting_(prometheus::BuildGauge()
                   .Name("vigil_past_erasures_waiting")
                   .Help("Erasures that some node of the fleet has yet to do, as far as this one knows")
                   .Register(*metrics.registry())
                   .Add({})) {}

void ErasureSeries::waiting(std::size_t count) {
  waiting_.Set(static_cast<double>(count));
}

}  // namespace vigil::actors
