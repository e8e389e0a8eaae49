// Rotary position embedding. 1-D, axial 2-D and M-RoPE differ only in the axis that turns a pair.
#pragma once

#include <array>
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

/// A token's place on each axis; 1-D uses the first, axial 2-D the first two.
using RopePosition = std::array<std::int32_t, 3>;

/// How fast one pair of elements turns, and with which axis.
struct RopeFrequency {
  float inverse = 0;
  std::int32_t axis = 0;
};

/// How exactly angles are computed.
enum class RopeAngles : std::uint8_t {
  /// Position times frequency in f32, as transformers computes them: far positions lose the fractions of
  /// their angles, all of them where an angle reaches 2^24.
  single,
  /// In f64, less whole turns, up to the sine and cosine: within 1e-6 of the exact ones at all positions, for
  /// frequencies up to 1, so that differences of positions count alike however long a stream has run.
  wide,
};

/// cos and sin[i, j] of positions[i][frequencies[j].axis] * frequencies[j].inverse, in f32: dense [rows,
/// pairs]. All of it lies on the stream's device. Throws std::invalid_argument for a negative number of rows
/// or pairs.
void rope_angles(Stream& stream, const RopePosition* positions, std::int64_t rows,
                 const RopeFrequency* frequencies, std::int64_t pairs, RopeAngles precision, float* cos,
                 float* sin);

}  // namespace vigil::kernels
