// The inner half of a gated MLP (such as SwiGLU), for both kinds of product.
#pragma once

#include "engine/model/layers/projections.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// activation(x gateᵀ) ⊙ (x upᵀ), `mlp` being gate and up, with their biases. `inner`: working memory of
/// [x.rows, mlp.width()] without gaps, in which the result lies, unless there is a place for it in e4m3:
/// `rounded`, [x.rows, mlp.width() / 2], or nothing.
kernels::Matrix gated(kernels::Stream& stream, const Projections& mlp, kernels::Activation activation,
                      kernels::ConstMatrix x, kernels::Matrix inner, kernels::Matrix rounded = {});

}  // namespace vigil::model
