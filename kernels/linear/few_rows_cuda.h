// Products of one or a few rows: bound by reading the weights.
#pragma once

#include <cuda_runtime.h>

#include "kernels/linear/linear.h"

namespace vigil::kernels::cuda {

/// Whether `few_rows` can take the product: bf16, at most 4 rows, whole packs of 8.
bool fits_few_rows(ConstMatrix x, ConstMatrix w);

/// out (+)= x wᵀ + bias (in f32, or null).
void few_rows(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
              bool accumulate);

/// out = activation(x gᵀ + bias of g) ⊙ (x vᵀ + bias of v), w being the rows of g and then those of v, and
/// bias likewise.
void few_rows_gated(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                    Activation activation);

}  // namespace vigil::kernels::cuda
