// `key_distances` as its formula says it, in double precision.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/device/element.h"

namespace vigil::kernels::reference {

/// Of row i and the key in `slot`.
inline double key_distance(ConstMatrix k, std::int64_t i, const KvLayer& layer, std::int64_t slot) {
  double sum = 0;
  for (std::int64_t column = 0; column < k.cols; ++column) {
    const std::int64_t at = layer.offset(slot, column / layer.head_dim) + column % layer.head_dim;
    const ConstMatrix pages{layer.base, layer.dtype, 1, at + 1, at + 1};
    const double difference = double{element(k, i, column)} - double{element(pages, 0, at)};
    sum += difference * difference;
  }
  return sum;
}

}  // namespace vigil::kernels::reference
