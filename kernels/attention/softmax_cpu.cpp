#include "kernels/attention/softmax_cpu.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/device/cpu.h"

namespace vigil::kernels {
namespace {

/// exp for x <= 0 as 2^n times a polynomial for 2^f, |f| <= 1/2. Its relative error is about (2 + 0.6 |x|)
/// 2^-23: the product with 1/ln 2 is rounded once, which tells where the result is small. Below -87 it is 0.
VIGIL_INLINE float exp_of_negative(float x) {
  const float y = std::max(x, -87.0F) * 1.44269504088896341F;
  const float n = std::nearbyint(y);
  const float f = y - n;
  // Taylor coefficients of 2^f, (ln 2)^i / i!; the remainder at |f| = 1/2 is below 1e-8.
  float p = 1.5403530e-4F;
  p = p * f + 1.33335581e-3F;
  p = p * f + 9.61812911e-3F;
  p = p * f + 5.55041087e-2F;
  p = p * f + 2.40226507e-1F;
  p = p * f + 6.93147181e-1F;
  p = p * f + 1.0F;
  const float power = std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
  return x < -87.0F ? 0.0F : p * power;
}

VIGIL_INLINE float store_weight(float value, float* to) {
  *to = value;
  return value;
}

/// Weights are finite and not negative, so rounding needs no care for NaN.
VIGIL_INLINE float store_weight(float value, bf16* to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) & 0xffff0000U;
  to->bits = static_cast<std::uint16_t>(rounded >> 16U);
  return std::bit_cast<float>(rounded);
}

template <typename Weight>
VIGIL_INLINE float softmax(const float* scores, std::int64_t seen, std::int64_t keys, float scale,
                           float& maximum, float& total, Weight* weights) {
  float largest = maximum;
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < seen; ++j) largest = std::max(largest, scores[j] * scale);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < seen; ++j)
    sum += store_weight(exp_of_negative(scores[j] * scale - largest), weights + j);
  for (std::int64_t j = seen; j < keys; ++j) weights[j] = Weight{};
  // A row that has seen nothing yet has a maximum of -infinity, and -infinity minus itself is no number.
  const float rescale = maximum == largest ? 1.0F : std::exp(maximum - largest);
  total = total * rescale + sum;
  maximum = largest;
  return rescale;
}

}  // namespace

VIGIL_SIMD float softmax_f32(const float* scores, std::int64_t seen, std::int64_t keys, float scale,
                             float& maximum, float& total, float* weights) {
  return softmax(scores, seen, keys, scale, maximum, total, weights);
}

VIGIL_SIMD float softmax_bf16(const float* scores, std::int64_t seen, std::int64_t keys, float scale,
                              float& maximum, float& total, bf16* weights) {
  return softmax(scores, seen, keys, scale, maximum, total, weights);
}

VIGIL_SIMD void scale_to_bf16(const float* from, std::int64_t count, float factor, bf16* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) to[j] = to_bf16(from[j] * factor);
}

}  // namespace vigil::kernels
