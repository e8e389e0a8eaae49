// The implementations behind similarity.h, which has checked what they are given.
#pragma once

#include "kernels/similarity/similarity.h"

namespace vigil::kernels {

/// The most tokens of a crop.
inline constexpr std::int64_t kCropTokens = kCropEdge * kCropEdge;

/// Whether a vector whose squares add up to this has a direction.
constexpr bool has_direction(double squares) {
  return squares >= 1e-30 && squares <= 1e30;
}

/// Crops along so many places.
constexpr std::int64_t crops_along(std::int64_t places) {
  return (places + kCropEdge - 1) / kCropEdge;
}

namespace cpu {
void token_similarity(Stream& stream, const PlacedTokens& tokens, const PlacedTokens& before,
                      std::int64_t rows, std::int64_t columns, float* to_before, float* spread);
}
namespace cuda {
void token_similarity(Stream& stream, const PlacedTokens& tokens, const PlacedTokens& before,
                      std::int64_t rows, std::int64_t columns, float* to_before, float* spread);
}
}  // namespace vigil::kernels
