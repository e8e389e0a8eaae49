// `rope` as its formula says it, in double precision.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/element.h"

namespace vigil::kernels::reference {

/// Row i of the result. As Hugging Face writes it: x cos + rotate_half(x) sin, with cos and sin repeated for
/// both halves.
inline std::vector<double> rope(ConstMatrix x, std::int64_t head_dim, const float* cos, const float* sin,
                                std::int64_t i) {
  const std::int64_t half = head_dim / 2;
  std::vector<double> row;
  for (std::int64_t column = 0; column < x.cols; ++column) {
    const std::int64_t j = column % head_dim;
    const std::int64_t angle = i * half + j % half;
    const double partner =
        j < half ? -double{element(x, i, column + half)} : double{element(x, i, column - half)};
    row.push_back(double{element(x, i, column)} * double{cos[angle]} + partner * double{sin[angle]});
  }
  return row;
}

}  // namespace vigil::kernels::reference
