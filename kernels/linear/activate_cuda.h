// Activations on the GPU, in f32.
#pragma once

#include "kernels/linear/linear.h"

namespace vigil::kernels::cuda {

__device__ __forceinline__ float activate(float value, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return 0.5F * value * (1.0F + erff(value * 0.70710678118654752F));
    case Activation::silu:
      return value / (1.0F + __expf(-value));
    case Activation::none:
      break;
  }
  return value;
}

}  // namespace vigil::kernels::cuda
