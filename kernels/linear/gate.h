// The gate of a gated MLP, where gate and value come from one product.
#pragma once

#include "kernels/linear/linear.h"

namespace vigil::kernels {

/// gate = multiply ⊙ activation(gate), element by element in f32. Both f32 or both bf16, of one shape; they
/// may be columns of one matrix. Throws std::invalid_argument for shapes or types that do not fit.
void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply);

/// inner[m, : n] = activation(x[m, k] g[n, k]ᵀ + bias of g) ⊙ (x v[n, k]ᵀ + bias of v), where w holds the
/// rows of g and then those of v, and `bias` likewise. inner is [m, 2 n], of x's type; its other half is
/// working space. As in `linear`, CUDA reads the weights of up to 16 rows of bf16 while the stream's previous
/// operation ends, so that `w` has to be in place before that one begins. Throws as `linear` does.
void gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                  Matrix inner);

/// What `apply_gate` makes, rounded to the gate's type and from there to e4m3 as `quantize_rows` does, into
/// `out` of the same shape; gate and values stay.
void quantized_gate(Stream& stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
                    Matrix out);

}  // namespace vigil::kernels
