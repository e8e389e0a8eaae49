#include "kernels/attention/softmax_cpu.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/device/cpu.h"

namespace vigil::kernels {
namespace {

constexpr float kLog2E = 1.44269504088896341F;
/// Adding it leaves the nearest integer in the low bits of a number of less than 2^22.
constexpr float kRounder = 12582912.0F;
/// Less than this and the power would be denormal: it stays at 2^-125, which weighs nothing beside the 2^0 of
/// the largest score.
constexpr float kLeastExponent = -125.0F;

/// The Taylor series of 2^f, |f| <= 1/2, in (ln 2)^i / i!: remainders are below 1e-8 for `float` and 5e-5 for
/// bf16, whose own rounding is 4e-3.
VIGIL_INLINE float power_of_fraction(float f, float /*stored_as*/) {
  float p = 1.5403530e-4F;
  p = p * f + 1.33335581e-3F;
  p = p * f + 9.61812911e-3F;
  p = p * f + 5.55041087e-2F;
  p = p * f + 2.40226507e-1F;
  p = p * f + 6.93147181e-1F;
  return p * f + 1.0F;
}

VIGIL_INLINE float power_of_fraction(float f, bf16 /*stored_as*/) {
  float p = 9.61812911e-3F;
  p = p * f + 5.55041087e-2F;
  p = p * f + 2.40226507e-1F;
  p = p * f + 6.93147181e-1F;
  return p * f + 1.0F;
}

/// 2^y for y <= 0, as 2^f times 2^n: n is added to the exponent of 2^f.
template <typename Weight>
VIGIL_INLINE float power_of_two(float y) {
  const float bounded = std::max(y, kLeastExponent);
  const float rounded = bounded + kRounder;
  const float fraction = bounded - (rounded - kRounder);
  const auto exponent = std::bit_cast<std::uint32_t>(rounded) << 23U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power_of_fraction(fraction, Weight{})) + exponent);
}

VIGIL_INLINE float store_weight(float value, float* to) {
  *to = value;
  return value;
}

/// Weights are finite and not negative, so rounding needs no care for NaN; a tie goes up.
VIGIL_INLINE float store_weight(float value, bf16* to) {
  const std::uint32_t rounded = (std::bit_cast<std::uint32_t>(value) + 0x8000U) & 0xffff0000U;
  to->bits = static_cast<std::uint16_t>(rounded >> 16U);
  return std::bit_cast<float>(rounded);
}

template <typename Weight>
VIGIL_INLINE float softmax(const float* scores, std::int64_t seen, std::int64_t keys, float scale,
                           float& maximum, float& total, Weight* weights) {
  const float exponents = scale * kLog2E;
  float largest = maximum;
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < seen; ++j) largest = largest < scores[j] ? scores[j] : largest;
  if (largest == -std::numeric_limits<float>::infinity()) {
    // Nothing weighs anything so far, and differences of infinities are no numbers; but what is NaN shows.
    for (std::int64_t j = 0; j < keys; ++j) weights[j] = Weight{};
    for (std::int64_t j = 0; j < seen; ++j)
      if (std::isnan(scores[j])) total += store_weight(scores[j], weights + j);
    return 1.0F;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < seen; ++j)
    sum += store_weight(power_of_two<Weight>((scores[j] - largest) * exponents), weights + j);
  for (std::int64_t j = seen; j < keys; ++j) weights[j] = Weight{};
  const float rescale = maximum == largest ? 1.0F : std::exp2((maximum - largest) * exponents);
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
