// Element types of tensors, and the scalar conversions between them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace vigil::kernels {

/// f32, bf16 and f16 hold weights and activations; i32 indexes and token ids; u8 pictures.
enum class DType : std::uint8_t { f32, bf16, f16, i32, u8 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
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

}  // namespace vigil::kernels
