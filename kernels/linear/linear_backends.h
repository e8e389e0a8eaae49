// The implementations behind linear.h and gate.h, which have checked what they are given.
#pragma once

#include "kernels/linear/linear.h"

namespace vigil::kernels {
namespace cpu {
void linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options);
void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply);
void gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                  Matrix inner);
}  // namespace cpu
namespace cuda {
void linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options);
void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply);
void gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                  Matrix inner);
}  // namespace cuda
}  // namespace vigil::kernels
