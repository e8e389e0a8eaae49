// Rotary position embedding, with the angles worked out by the caller: 1-D, axial 2-D and M-RoPE differ in
// their angles only.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Rotates every head of every row in place, pairing element j with element j + head_dim / 2 (the "half"
/// layout of Hugging Face):
///
///   x'[j]                = x[j] cos[i, j] - x[j + head_dim / 2] sin[i, j]
///   x'[j + head_dim / 2] = x[j + head_dim / 2] cos[i, j] + x[j] sin[i, j]      for j < head_dim / 2
///
/// x is f32 or bf16 [rows, heads * head_dim]; cos and sin are f32 [rows, head_dim / 2], dense. Computed in
/// f32. Throws std::invalid_argument for shapes or types that do not fit.
void rope(Stream& stream, Matrix x, std::int64_t head_dim, const float* cos, const float* sin);

}  // namespace vigil::kernels
