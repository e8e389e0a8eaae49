#include "engine/kv/retrieval/hc_cost.h"

namespace vigil::retrieval {

HcCost paper_cost(const KeyShape& shape) {
  return {static_cast<double>(shape.kv_bytes()) / 2 + 4 + 4, 4, static_cast<double>(shape.kv_bytes())};
}

HcCost table_cost(const KeyShape& shape, const ResvSettings& settings) {
  const double projections = settings.bits == kernels::ClusterBits::mean ? 4.0 * settings.n_hp : 0;
  return {static_cast<double>(shape.cols()) * 4 + 8 + 4 + projections, 4,
          static_cast<double>(shape.kv_bytes())};
}

}  // namespace vigil::retrieval
