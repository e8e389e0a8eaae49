// Matrix products with weights: the operation in which a forward pass should spend its time.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// What follows the product and the bias, element by element.
enum class Activation : std::uint8_t { none, gelu, silu };

struct LinearOptions {
  /// [n] in f32, or null.
  const float* bias = nullptr;
  Activation activation = Activation::none;
  /// Multiplied into the activated result element by element: the gate of a gated MLP. Shape and type of
  /// `out`; null data: none.
  ConstMatrix multiply = {};
  /// Added to the result instead of overwriting: out += x wᵀ + bias. Only with f32 output, without activation
  /// and gate.
  bool accumulate = false;
};

/// out[m, n] = multiply ⊙ activation(x[m, k] · w[n, k]ᵀ + bias), accumulated in f32.
///
/// x and w have the same type, f32 or bf16; out is f32 or x's type. `w` lies as Hugging Face stores it, one
/// row an output feature, and is read in place. GELU is the exact one (erf). An empty x is allowed. Throws
/// std::invalid_argument for shapes or types that do not fit. CPU: oneDNN; on processors without bf16
/// products pass f32.
void linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options = {});

}  // namespace vigil::kernels
