// Products of E4M3 with few rows: bound by reading the weights.
#pragma once

#include <cuda_runtime.h>

#include "kernels/linear/linear.h"

namespace vigil::kernels::cuda {

/// Rows of x that `few_rows_e4m3` takes.
constexpr std::int64_t kFewRowsE4m3 = 16;

/// out (+)= x wᵀ + bias (in f32, or null), x and w e4m3 with their scales and zeros up to the multiple of 16.
void few_rows_e4m3(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                   bool accumulate);

}  // namespace vigil::kernels::cuda
