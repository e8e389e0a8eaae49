// `rms_norm` as its formula says it, in double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/device/element.h"

namespace vigil::kernels::reference {

/// Row i of the result.
inline std::vector<double> rms_norm(ConstMatrix x, const float* weight, float epsilon, std::int64_t i) {
  double squares = 0;
  for (std::int64_t j = 0; j < x.cols; ++j) squares += std::pow(double{element(x, i, j)}, 2);
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.cols) + double{epsilon});
  std::vector<double> row;
  for (std::int64_t j = 0; j < x.cols; ++j)
    row.push_back(double{element(x, i, j)} * scale * double{weight[j]});
  return row;
}

}  // namespace vigil::kernels::reference
