#include "engine/model/layers/gated.h"

#include "kernels/linear/gate.h"
#include "kernels/quantize/quantize.h"

namespace vigil::model {

kernels::Matrix gated(kernels::Stream& stream, const Projections& mlp, kernels::Activation activation,
                      kernels::ConstMatrix x, kernels::Matrix inner, kernels::Matrix rounded) {
  const std::int64_t width = mlp.width() / 2;
  if (mlp.joined()) {
    if (rounded.data != nullptr) {
      mlp.apply(stream, x, inner);
      kernels::quantized_gate(stream, inner.columns(0, width), activation, inner.columns(width, width),
                              rounded);
      return rounded;
    }
    const kernels::ConstMatrix gate = mlp.part(0).weight;
    kernels::gated_linear(stream, x, {gate.data, gate.dtype, 2 * width, gate.cols, gate.stride},
                          mlp.part(0).bias, activation, inner);
    return inner.columns(0, width);
  }
  // Two products anyway: each into rows without gaps, and the second takes the gate along.
  const kernels::Matrix gate = kernels::dense(inner.data, inner.dtype, x.rows, width);
  const kernels::Matrix up = kernels::dense(
      inner.row<std::byte>(0) + static_cast<std::size_t>(x.rows * width) * kernels::size_of(inner.dtype),
      inner.dtype, x.rows, width);
  kernels::linear(stream, x, mlp.part(1).weight, up, {.bias = mlp.part(1).bias});
  kernels::linear(stream, x, mlp.part(0).weight, gate,
                  {.bias = mlp.part(0).bias, .activation = activation, .multiply = up});
  if (rounded.data == nullptr) return gate;
  kernels::quantize_rows(stream, gate, rounded);
  return rounded;
}

}  // namespace vigil::model
