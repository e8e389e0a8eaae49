// Softmax over scores that come 128 at a time, in the layout of wgmma's accumulator: 64 rows a warpgroup, two
// a thread, each shared by four lanes.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/attention/hopper_cuda.h"

namespace vigil::kernels::cuda {

/// The largest of no score.
inline constexpr float kNone = -std::numeric_limits<float>::infinity();

/// The running maximum and sum of a thread's two rows.
struct Softmax {
  float largest[2] = {kNone, kNone};
  float total[2] = {0, 0};  // of this thread's columns

  /// Turns scores into weights 2^(scale (s - largest)); `shrink` is what older weights are to be multiplied
  /// by.
  __device__ __forceinline__ void weigh(float (&s)[64], float scale, float (&shrink)[2]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float most = largest[row];
#pragma unroll
      for (int j = 0; j < 16; ++j) most = fmaxf(most, fmaxf(s[4 * j + 2 * row], s[4 * j + 2 * row + 1]));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 2));
      const float shift = most == kNone ? 0.0F : most * scale;  // no key yet: keep infinities apart
      shrink[row] = exp2_fast(largest[row] * scale - shift);
      largest[row] = most;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[4 * j + 2 * row + e];
          x = exp2_fast(x * scale - shift);
          sum += x;
        }
      total[row] = total[row] * shrink[row] + sum;
    }
  }
};

/// Hides what a thread's two rows do not see: `seen[page][row]`, shifted so that bit 8 j + e is column 8 j +
/// e.
__device__ __forceinline__ void hide(float (&s)[64], const std::uint64_t (&seen)[2][2]) {
#pragma unroll
  for (int page = 0; page < 2; ++page)
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const auto bits = static_cast<std::uint32_t>(seen[page][row] >> (j / 4 * 32));
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[32 * page + 4 * j + 2 * row + e];
          x = (bits & (1U << (j % 4 * 8 + e))) != 0 ? x : kNone;
        }
      }
}

}  // namespace vigil::kernels::cuda
