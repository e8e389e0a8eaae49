#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/linear/activation_cpu.h"
#include "kernels/linear/linear_backends.h"
#include "kernels/quantize/quantize_cpu.h"

namespace vigil::kernels {
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

void cpu::quantized_gate(Stream& stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
                         Matrix out) {
  parallel_blocks(stream, gate.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(gate.cols));
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < gate.cols; ++j)
        row[static_cast<std::size_t>(j)] =
            gate.dtype == DType::f32 ? activate(gate.row<float>(i)[j], activation) * multiply.row<float>(i)[j]
                                     : to_float(to_bf16(activate(to_float(gate.row<bf16>(i)[j]), activation) *
                                                        to_float(multiply.row<bf16>(i)[j])));
      quantize_row(row.data(), out, i);
    }
  });
}

}  // namespace vigil::kernels
