// `linear` as its formula says it, in double precision.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/device/element.h"
#include "kernels/linear/linear.h"

namespace vigil::kernels::reference {

/// One element of a result, and the size of what was added up for it: rounding errors grow with the second,
/// not with the first.
struct Sum {
  double value = 0;
  double magnitude = 0;
};

inline double activate(double x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::none:
      break;
  }
  return x;
}

/// Element (i, j) of linear(x, w); `before` is the output's element before the call, which counts only if
/// results are accumulated.
inline Sum linear(ConstMatrix x, ConstMatrix w, std::int64_t i, std::int64_t j, const LinearOptions& options,
                  double before) {
  Sum sum;
  const auto add = [&sum](double term) {
    sum.value += term;
    sum.magnitude += std::abs(term);
  };
  for (std::int64_t k = 0; k < x.cols; ++k) add(double{element(x, i, k)} * double{element(w, j, k)});
  if (options.bias.values != nullptr) add(options.bias.values[j]);
  sum.value = activate(sum.value, options.activation);
  if (options.multiply.data != nullptr) {
    const double gate = element(options.multiply, i, j);
    sum.value *= gate;
    sum.magnitude *= std::abs(gate);
  }
  if (options.accumulate) add(before);
  return sum;
}

}  // namespace vigil::kernels::reference
