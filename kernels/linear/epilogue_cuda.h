// What follows a product and cuBLASLt has no epilogue for, and the product of shapes that it refuses.
#pragma once

#include <cuda_runtime.h>

#include "kernels/linear/linear.h"

namespace vigil::kernels::cuda {

/// out = multiply ⊙ activation(out + bias), in place; bias in f32 or null.
void apply_epilogue(cudaStream_t stream, Matrix out, const float* bias, Activation activation,
                    ConstMatrix multiply);

/// out (+)= x wᵀ, one thread an element: for shapes so odd that nobody should have large ones.
void plain_product(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, bool accumulate);

}  // namespace vigil::kernels::cuda
