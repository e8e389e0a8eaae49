// Activations of linear.h on the CPU.
#pragma once

#include <cmath>

#include "kernels/linear/linear.h"

namespace vigil::kernels::cpu {

inline float activate(float value, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return 0.5F * value * (1.0F + std::erf(value * 0.70710678118654752F));
    case Activation::silu:
      return value / (1.0F + std::exp(-value));
    case Activation::none:
      break;
  }
  return value;
}

}  // namespace vigil::kernels::cpu
