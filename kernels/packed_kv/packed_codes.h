// The arithmetic of packed_kv.h, element by element, for the CPU and for what a GPU does element by element.
// Files that include it are compiled without contraction of products and sums, so that devices agree.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/device/dtype.h"

namespace vigil::kernels::packed {

constexpr std::uint16_t kNan = 0x7fff;
/// The code of what is no finite number.
constexpr std::uint8_t kNanE4m3 = 0x7f;
constexpr std::uint32_t kNanInt4 = 15;
constexpr float kLeast = 0x1p-126F;
/// Rounded up: 448 times a bf16 has that as its scale.
constexpr float kOneOver448 = 0x1.24924ap-9F;
/// Added to a number from 0 to 2^22 it rounds it to an integer, which is then in the lowest bits.
constexpr float kRounder = 0x1.8p23F;

/// As the bf16 that is packed: its bits.
constexpr std::uint16_t kept(bf16 value) {
  return value.bits;
}
constexpr std::uint16_t kept(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7fffffffU) > 0x7f800000U ? kNan : to_bf16(value).bits;
}
constexpr float number(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}
constexpr bool is_finite(std::uint16_t bits) {
  return (bits & 0x7f80U) != 0x7f80U;
}
constexpr std::uint16_t towards_zero(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
}

/// The scale of a token of fp8 whose largest finite magnitude is `most`.
constexpr std::uint16_t fp8_scale(float most) {
  const float scale = most * kOneOver448;
  return towards_zero(scale < kLeast ? kLeast : scale);
}
constexpr std::uint8_t fp8_code(std::uint16_t bits, float inverse) {
  return is_finite(bits) ? to_e4m3(number(bits) * inverse).bits : kNanE4m3;
}
constexpr float fp8_value(std::uint8_t code, std::uint16_t scale) {
  return to_float(e4m3{code}) * number(scale);
}

/// How a column of a block is written, and read.
struct Int4Column {
  std::uint16_t base = 0;
  /// With its sign bit where 15 is no number.
  std::uint16_t step = 0;
  float inverse = 0;
  float shift = 0;
};

/// Of the smallest and the largest finite number, the smallest above the largest where there is none; `odd`:
/// whether others are among them.
constexpr Int4Column int4_column(float least, float most, bool odd) {
  Int4Column column;
  if (least <= most) {
    // Not a zero of either sign. Halves, since a difference may be too large for f32.
    const float base = least + 0.0F;
    const float step = (0.5F * most - 0.5F * base) / (odd ? 7.0F : 7.5F);
    column.base = towards_zero(base);
    column.step = step < kLeast ? std::uint16_t{0} : towards_zero(step);
  }
  if (column.step != 0) column.inverse = 1.0F / number(column.step);
  column.shift = number(column.base) * column.inverse;
  if (odd) column.step = static_cast<std::uint16_t>(column.step | 0x8000U);
  return column;
}
constexpr std::uint32_t int4_code(std::uint16_t bits, float inverse, float shift) {
  if (!is_finite(bits)) return kNanInt4;
  // A step is cut off by less than 2^-7 of it: at most 15.2 is rounded, or 14.2.
  return std::bit_cast<std::uint32_t>((number(bits) * inverse - shift) + kRounder) & 15U;
}
constexpr float int4_value(std::uint32_t code, std::uint16_t base, std::uint16_t step) {
  const auto size = static_cast<std::uint16_t>(step & 0x7fffU);
  // The product is exact, so there is one rounding; halves, since the product may be too large for f32.
  const float value = (static_cast<float>(code) * (0.5F * number(size)) + 0.5F * number(base)) * 2.0F;
  return code == kNanInt4 && step != size ? number(kNan) : value;
}

}  // namespace vigil::kernels::packed
