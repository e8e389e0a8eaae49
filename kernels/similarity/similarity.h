// How alike the tokens of a picture are: each to the one at its place in the picture before, and those that
// lie side by side.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Places along the edge of a crop, within which tokens are compared with each other.
inline constexpr std::int64_t kCropEdge = 5;

/// Some tokens of a picture that is cut into a grid of places, counted along its rows.
struct PlacedTokens {
  /// [tokens, width], f32 or bf16.
  ConstMatrix embeddings;
  /// [tokens], where each lies: ascending, none twice, each within the grid (not checked).
  const std::int32_t* places = nullptr;
};

/// Of token i of a picture of rows x columns places, with cos(a, b) = a·b / (|a| |b|):
///
///   to_before[i] = cos(i, the token at its place in `before`)            a term of HIPPO's equation 3
///   spread[i]    = mean over k of (cos(i, k) - m)², m = mean over k of cos(i, k)        equations 5 and 6
///
/// k: all tokens, i among them, that are there of i's crop: the grid is cut from its first place on into
/// crops of kCropEdge x kCropEdge places, which are smaller at its last rows and columns. The spread of a
/// token that is alone in its crop is 0.
///
/// A vector has a direction if its squares add up to 1e-30 at least and to 1e30 at most: neither zero, nor
/// without end, nor one with what is no number. One without has NaN for both, and counts for no other token.
/// to_before is NaN, too, where `before` has no token at the place or one without a direction. `before` is of
/// the same grid, width and type, or of no rows.
///
/// to_before and spread: f32 [tokens]. All of it lies on the stream's device. Added up in f32 or better; each
/// embedding is read from memory once. Throws std::invalid_argument for shapes or types that do not fit.
void token_similarity(Stream& stream, const PlacedTokens& tokens, const PlacedTokens& before,
                      std::int64_t rows, std::int64_t columns, float* to_before, float* spread);

}  // namespace vigil::kernels
