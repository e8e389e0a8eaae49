// Products of one or a few rows: bound by reading the weights.
#pragma once

#include <cuda_runtime.h>

#include "kernels/linear/linear.h"

namespace vigil::kernels::cuda {

/// Whether `few_rows` can take the product: bf16, at most 4 rows, whole packs of 8 that fit into shared
/// memory.
bool fits_few_rows(ConstMatrix x, ConstMatrix w);

/// out (+)= x wᵀ + bias (in f32, or null).
void few_rows(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
              bool accumulate);

}  // namespace vigil::kernels::cuda
