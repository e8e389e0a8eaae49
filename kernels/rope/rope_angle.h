// The angle of a far position, in f64: the same steps on every device.
#pragma once

#include <cstdint>

namespace vigil::kernels {

/// position * inverse less whole turns, within half a turn of 0 or a rounding more. Off by 2e-7 at most for
/// frequencies up to 1: the product's own rounding at positions near 2^31.
constexpr double angle_within_turn(std::int32_t position, float inverse) {
  // 2π in parts of 24 bits and the rest: a number of turns below 2^29 times a part is exact (Cody and Waite,
  // Software Manual for the Elementary Functions, 1980).
  constexpr double kFirst = 0x1.921fb4p+2;
  constexpr double kSecond = 0x1.4442dp-22;
  constexpr double kRest = 0x1.8469898cc517p-46;
  constexpr double kTurns = 0x1.45f306dc9c883p-3;  // of one radian
  const double angle = static_cast<double>(position) * static_cast<double>(inverse);
  const double turns =
      static_cast<double>(static_cast<std::int64_t>(angle * kTurns + (angle < 0 ? -0.5 : 0.5)));
  return ((angle - turns * kFirst) - turns * kSecond) - turns * kRest;
}

}  // namespace vigil::kernels
