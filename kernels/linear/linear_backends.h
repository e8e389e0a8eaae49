// The implementations behind linear.h and gate.h, which have checked what they are given.
#pragma once

#include "kernels/linear/linear.h"

namespace vigil::kernels {
namespace cpu {
void linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options);
/// w in e4m3.
void linear_e4m3(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options);
bool has_e4m3_products(Stream& stream);
void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply);
void gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                  Matrix inner);
void quantized_gate(Stream& stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
                    Matrix out);
}  // namespace cpu
namespace cuda {
void linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options);
void linear_e4m3(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options);
bool has_e4m3_products(Stream& stream);
void apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply);
void gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                  Matrix inner);
void quantized_gate(Stream& stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
                    Matrix out);
}  // namespace cuda
}  // namespace vigil::kernels
