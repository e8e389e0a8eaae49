// Products of one or a few rows: bound by reading the weights.
#pragma once

#include "kernels/device/cuda_queue.h"
#include "kernels/linear/linear.h"

namespace vigil::kernels::cuda {

/// Whether `few_rows` can take the product: bf16 or e4m3 with scales, at most 16 rows, whole packs of 16
/// bytes. Tells of a slow path where only the packs are missing.
bool fits_few_rows(ConstMatrix x, ConstMatrix w);

/// out (+)= x wᵀ + bias (in f32, or null). Weights are read while the stream's previous kernel ends, so that
/// they have to be in place before that one begins.
void few_rows(const CudaQueue& queue, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
              bool accumulate);

/// out = activation(x gᵀ + bias of g) ⊙ (x vᵀ + bias of v), w being the rows of g and then those of v, and
/// bias likewise; otherwise as `few_rows`.
void few_rows_gated(const CudaQueue& queue, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                    Activation activation);

}  // namespace vigil::kernels::cuda
