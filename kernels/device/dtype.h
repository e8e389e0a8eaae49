// Element types of tensors, and the scalar conversions between them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace vigil::kernels {

/// f32, bf16 and f16 hold weights and activations, e4m3 those of products that are quantised, with a scale a
/// row; i32 indexes and token ids; u8 pictures.
enum class DType : std::uint8_t { f32, bf16, f16, e4m3, i32, u8 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::e4m3:
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::e4m3:
      return "e4m3";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  return "?";
}

/// bfloat16: the upper half of an IEEE float. A type of its own, so that its bits are never taken for a
/// number.
struct bf16 {
  std::uint16_t bits = 0;
};

/// IEEE half precision; storage only.
struct f16 {
  std::uint16_t bits = 0;
};

/// FP8 with 4 bits of exponent and 3 of fraction: up to 448, no infinity, one NaN of either sign.
/// (Micikevicius et al., FP8 Formats for Deep Learning, 2022.)
struct e4m3 {
  std::uint8_t bits = 0;
};

/// The largest number that E4M3 holds.
constexpr float kMostE4m3 = 448;

constexpr float to_float(float value) {
  return value;
}
constexpr float to_float(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

/// Rounds to nearest, ties to even; NaN stays NaN.
constexpr bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return bf16{static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  return bf16{static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
}

constexpr float to_float(f16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (value.bits >> 10U) & 0x1fU;
  const std::uint32_t fraction = value.bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13U));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
  // Zero and subnormals: fraction * 2^-24, exact in float.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

constexpr float to_float(e4m3 value) {
  const std::uint32_t sign = (value.bits & 0x80U) << 24U;
  const std::uint32_t exponent = (value.bits >> 3U) & 0xfU;
  const std::uint32_t fraction = value.bits & 7U;
  if (exponent == 0xfU && fraction == 7) return std::bit_cast<float>(sign | 0x7fc00000U);
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 120U) << 23U) | (fraction << 20U));
  const float magnitude = static_cast<float>(fraction) * 0x1p-9F;
  return sign != 0 ? -magnitude : magnitude;
}

/// Rounds to nearest, ties to even; what is larger than 448 becomes 448, infinity too. NaN stays NaN.
constexpr e4m3 to_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24U) & 0x80U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const auto made = [sign](std::uint32_t code) { return e4m3{static_cast<std::uint8_t>(sign | code)}; };
  if (magnitude > 0x7f800000U) return made(0x7fU);
  if (magnitude >= std::bit_cast<std::uint32_t>(kMostE4m3)) return made(0x7eU);
  // Below the smallest normal number, 2^-6, the numbers are 2^-9 apart, as those of f32 are at 2^14.
  if (magnitude < std::bit_cast<std::uint32_t>(0x1p-6F))
    return made(std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14F) -
                std::bit_cast<std::uint32_t>(0x1p14F));
  return made(((magnitude + 0x7ffffU + ((magnitude >> 20U) & 1U)) >> 20U) - (120U << 3U));
}

}  // namespace vigil::kernels
