// Matrix products with weights: the operation in which a forward pass should spend its time.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// What follows the product and the bias, element by element.
enum class Activation : std::uint8_t { none, gelu, silu };

/// A vector [n] that is added to every row; none if `values` is null.
struct Bias {
  const float* values = nullptr;
  /// The same rounded to bf16, or null: spares a GPU a pass over results in bf16, and over those of e4m3.
  const bf16* rounded = nullptr;

  Bias() = default;
  Bias(const float* in_f32, const bf16* in_bf16 = nullptr)  // NOLINT(google-explicit-constructor)
      : values(in_f32), rounded(in_bf16) {}
};

struct LinearOptions {
  Bias bias = {};
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
/// x and w have the same type, f32 or bf16; out is f32 or x's type. Or w is e4m3 (kernels/quantize), x too,
/// or else f32 or bf16 and rounded to e4m3 first, as `quantize_rows` does it; out is f32 or bf16, and the
/// scales of x's and w's rows are multiplied into the sums. `w` lies as Hugging Face stores it, one row an
/// output feature, and is read in place. GELU is the exact one (erf). An empty x is allowed. Throws
/// std::invalid_argument for shapes or types that do not fit. CPU: oneDNN; on processors without bf16
/// products pass f32; e4m3 is emulated in f32, slowly. CUDA: cuBLASLt, in f32 without
/// TF32; the product may be rounded to out's type before a bias, an activation
/// or a gate. Sums of e4m3 products keep 14 bits of their largest term there (see linear_e4m3_cuda.cpp).
/// CUDA, up to 16 rows of bf16 or e4m3: weights are read while the stream's previous operation ends, so that
/// `w` has to be in place before that one begins.
/// Throws DeviceError where cuBLASLt has no products of e4m3 with scales a row.
void linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options = {});

/// Whether the stream's device has products of e4m3: on a GPU cuBLASLt 12.9 or later and Hopper; emulated on
/// the CPU.
bool has_e4m3_products(Stream& stream);

/// Rows of x and w whose length is a multiple of this are as fast as they can be: zeros at their ends cost
/// less than odd lengths. 16 bytes of bf16 on a GPU, 1 on the CPU.
constexpr std::int64_t linear_multiple(DeviceKind device) {
  return device == DeviceKind::cuda ? 8 : 1;
}

}  // namespace vigil::kernels
