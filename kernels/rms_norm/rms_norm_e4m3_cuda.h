// rms_norm whose result goes into products of E4M3.
#pragma once

#include <cuda_runtime.h>

#include "kernels/device/matrix.h"

namespace vigil::kernels::cuda {

/// As rms_norm.h and quantize.h say, one after the other: x f32, out e4m3.
void rms_norm_e4m3(cudaStream_t stream, ConstMatrix x, const float* weight, float epsilon, Matrix out);

}  // namespace vigil::kernels::cuda
