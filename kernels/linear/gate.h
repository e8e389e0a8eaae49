// The gate of a gated MLP, where gate and value come from one product.
#pragma once

#include "kernels/linear/linear.h"

namespace vigil::kernels {

/// gate = multiply ⊙ activation(gate), element by element in f32. Both f32 or both bf16, of one shape; they
/// may be columns of one matrix. Throws std::invalid_argument for shapes or types that do not fit.
void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply);

}  // namespace vigil::kernels
