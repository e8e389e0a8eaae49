// `quantize_rows` in double precision: the nearest of all numbers that E4M3 has.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/device/element.h"

namespace vigil::kernels::reference {

/// The scale of row i.
inline double e4m3_scale(ConstMatrix x, std::int64_t i) {
  double most = 0;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const double value = element(x, i, j);
    if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
    most = std::fmax(most, std::abs(value));
  }
  return std::fmax(most / kMostE4m3, double{std::numeric_limits<float>::min()});
}

/// The number of E4M3 that is nearest to a value of at most 448, and half of the distance of its neighbours
/// there: what rounding may be off by.
struct Nearest {
  double value;
  double half_step;
};
inline Nearest nearest_e4m3(double value) {
  const double step =
      std::exp2(std::fmax(std::floor(std::log2(std::fmax(std::abs(value), 1e-300))), -6.0) - 3);
  return {std::fmin(std::nearbyint(std::abs(value) / step) * step, double{kMostE4m3}) * (value < 0 ? -1 : 1),
          step / 2};
}

}  // namespace vigil::kernels::reference
