// The implementations behind rms_norm.h, which has checked what they are given.
#pragma once

#include "kernels/rms_norm/rms_norm.h"

namespace vigil::kernels {
namespace cpu {
void rms_norm(Stream& stream, ConstMatrix x, const float* weight, float epsilon, Matrix out);
}
namespace cuda {
void rms_norm(Stream& stream, ConstMatrix x, const float* weight, float epsilon, Matrix out);
}
}  // namespace vigil::kernels
