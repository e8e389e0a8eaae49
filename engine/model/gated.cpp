#include "engine/model/gated.h"

#include "kernels/linear/gate.h"

namespace vigil::model {

kernels::Matrix gated(kernels::Stream& stream, const Projections& mlp, kernels::ConstMatrix x,
                      kernels::Matrix inner) {
  const std::int64_t width = mlp.width() / 2;
  const kernels::Matrix gate = inner.columns(0, width);
  const kernels::Matrix up = inner.columns(width, width);
  if (mlp.joined()) {
    mlp.apply(stream, x, inner);
    kernels::apply_gate(stream, gate, kernels::Activation::silu, up);
    return gate;
  }
  // Two products anyway: the second takes the gate along.
  mlp.apply(stream, x, inner, 1, 1);
  kernels::linear(stream, x, mlp.part(0).weight, gate,
                  {.bias = mlp.part(0).bias, .activation = kernels::Activation::silu, .multiply = up});
  return gate;
}

}  // namespace vigil::model
