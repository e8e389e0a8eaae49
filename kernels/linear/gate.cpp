#include "kernels/linear/gate.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/linear/linear_backends.h"

namespace vigil::kernels {

void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply) {
  if ((gate.dtype != DType::f32 && gate.dtype != DType::bf16) || multiply.dtype != gate.dtype ||
      multiply.rows != gate.rows || multiply.cols != gate.cols)
    throw std::invalid_argument("apply_gate: gate and values differ in shape or type");
  if (gate.rows == 0 || gate.cols == 0) return;
  VIGIL_ON_DEVICE(stream, apply_gate(stream, gate, activation, multiply));
}

}  // namespace vigil::kernels
