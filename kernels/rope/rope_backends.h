// The implementations behind rope.h, which has checked what they are given.
#pragma once

#include "kernels/rope/rope.h"

namespace vigil::kernels {
namespace cpu {
void rope(Stream& stream, Matrix x, std::int64_t head_dim, const float* cos, const float* sin);
void rope_angles(Stream& stream, const RopePosition* positions, std::int64_t rows,
                 const RopeFrequency* frequencies, std::int64_t pairs, RopeAngles precision, float* cos,
                 float* sin);
}  // namespace cpu
namespace cuda {
void rope(Stream& stream, Matrix x, std::int64_t head_dim, const float* cos, const float* sin);
void rope_angles(Stream& stream, const RopePosition* positions, std::int64_t rows,
                 const RopeFrequency* frequencies, std::int64_t pairs, RopeAngles precision, float* cos,
                 float* sin);
}  // namespace cuda
}  // namespace vigil::kernels
