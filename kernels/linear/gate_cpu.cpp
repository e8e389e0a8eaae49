#include <cmath>

#include "kernels/device/cpu.h"
#include "kernels/linear/linear_backends.h"

namespace vigil::kernels {
namespace {

float activate(float value, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return 0.5F * value * (1.0F + std::erf(value * 0.70710678118654752F));
    case Activation::silu:
      return value / (1.0F + std::exp(-value));
    case Activation::none:
      break;
  }
  return value;
}

}  // namespace

void cpu::apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply) {
  parallel_blocks(stream, gate.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < gate.cols; ++j) {
        if (gate.dtype == DType::f32) {
          float& value = gate.row<float>(i)[j];
          value = activate(value, activation) * multiply.row<float>(i)[j];
        } else {
          bf16& value = gate.row<bf16>(i)[j];
          value = to_bf16(activate(to_float(value), activation) * to_float(multiply.row<bf16>(i)[j]));
        }
      }
  });
}

void cpu::gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                       Matrix inner) {
  cpu::linear(stream, x, w, inner, {.bias = bias});
  const std::int64_t width = inner.cols / 2;
  cpu::apply_gate(stream, inner.columns(0, width), activation, inner.columns(width, width));
}

}  // namespace vigil::kernels
