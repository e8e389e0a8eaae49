#include "kernels/linear/gate.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/linear/linear_backends.h"
#include "kernels/quantize/quantize.h"

namespace vigil::kernels {
namespace {

void check(ConstMatrix gate, ConstMatrix multiply) {
  if ((gate.dtype != DType::f32 && gate.dtype != DType::bf16) || multiply.dtype != gate.dtype ||
      multiply.rows != gate.rows || multiply.cols != gate.cols)
    throw std::invalid_argument("gate: gate and values differ in shape or type");
}

}  // namespace

void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply) {
  check(gate, multiply);
  if (gate.rows == 0 || gate.cols == 0) return;
  VIGIL_ON_DEVICE(stream, apply_gate(stream, gate, activation, multiply));
}

void gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                  Matrix inner) {
  if ((x.dtype != DType::f32 && x.dtype != DType::bf16) || w.dtype != x.dtype || inner.dtype != x.dtype)
    throw std::invalid_argument("gated_linear: types differ");
  if (w.rows % 2 != 0 || w.cols != x.cols || inner.rows != x.rows || inner.cols != w.rows)
    throw std::invalid_argument("gated_linear: shapes do not fit each other");
  if (x.rows == 0 || w.rows == 0) return;
  VIGIL_ON_DEVICE(stream, gated_linear(stream, x, w, bias, activation, inner));
}

void quantized_gate(Stream& stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
                    Matrix out) {
  check(gate, multiply);
  if (!holds_e4m3(out) || out.rows != gate.rows || out.cols != gate.cols)
    throw std::invalid_argument("gate: the quantised result has another shape or type");
  if (gate.rows == 0 || gate.cols == 0) return;
  VIGIL_ON_DEVICE(stream, quantized_gate(stream, gate, activation, multiply, out));
}

}  // namespace vigil::kernels
