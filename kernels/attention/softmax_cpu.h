// The row operations of the online softmax, compiled for each instruction set.
#pragma once

#include <cstdint>

#include "kernels/device/dtype.h"

namespace vigil::kernels {

/// One row of one tile: with m' = max(m, max s[j]) over the first `seen` of `keys` scores and scale > 0,
/// weights[j] = exp(scale (s[j] - m')) (0 beyond `seen`), total = total exp(scale (m - m')) + Σ weights,
/// maximum = m'. Returns exp(scale (m - m')), by which what was summed so far has to be multiplied.
float softmax_f32(const float* scores, std::int64_t seen, std::int64_t keys, float scale, float& maximum,
                  float& total, float* weights);

/// The same with weights rounded to bf16; the total is that of the rounded weights, so that they sum to one
/// exactly.
float softmax_bf16(const float* scores, std::int64_t seen, std::int64_t keys, float scale, float& maximum,
                   float& total, bf16* weights);

/// to[j] = bf16(from[j] * factor) for j < count.
void scale_to_bf16(const float* from, std::int64_t count, float factor, bf16* to);

}  // namespace vigil::kernels
