#pragma once

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// out[i, :] = weight ⊙ x[i, :] / sqrt(mean(x[i, :]²) + epsilon)
///
/// x is f32 [rows, cols], weight f32 [cols], out f32, bf16 or e4m3 (kernels/quantize) [rows, cols]; x and out
/// may not overlap unless both are f32 and the same. Computed in f32. Throws std::invalid_argument for shapes
/// or types that do not fit.
void rms_norm(Stream& stream, ConstMatrix x, const float* weight, float epsilon, Matrix out);

}  // namespace vigil::kernels
