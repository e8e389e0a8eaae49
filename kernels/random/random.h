// Numbers that only look like weights: models of real shapes without their checkpoints.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// The `index`-th number of a sequence, uniform in [-1, 1): splitmix64's output function, so that any element
/// can be had alone. The same on every device.
constexpr float random_number(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  z ^= z >> 31U;
  // 24 bits, which a float holds exactly.
  return static_cast<float>(z >> 40U) * 0x1p-23F - 1.0F;
}

/// Which numbers of a sequence a matrix has, that is a part of a larger one.
struct RandomPart {
  /// The number of the first element, and how many lie between the first ones of two rows; 0: the columns.
  std::int64_t first = 0;
  std::int64_t pitch = 0;
};

/// to[i, j] = scale * random_number(seed, first + i * pitch + j), f32 or bf16 (rounded to nearest even).
/// Throws std::invalid_argument for another type.
void fill_random(Stream& stream, Matrix to, std::uint64_t seed, float scale, RandomPart part = {});

}  // namespace vigil::kernels
