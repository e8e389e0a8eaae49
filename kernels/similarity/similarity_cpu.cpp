#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/device/cpu.h"
#include "kernels/similarity/similarity_backends.h"

namespace vigil::kernels {
namespace {

/// Elements of a crop's tokens that are compared while they are in the first-level cache.
constexpr std::int64_t kPart = 256;
/// Tokens that one is multiplied with at a time, and those of a crop with what fills up the last time.
constexpr std::int64_t kAtOnce = 4, kRows = (kCropTokens + kAtOnce - 1) / kAtOnce * kAtOnce;

struct Crop {
  std::int64_t tokens = 0;
  /// Rows of the embeddings; -1: there is none.
  std::array<std::int64_t, kCropTokens> rows{}, before{};
};

/// Of the products of its tokens: those of row i up to its own column and a few more.
struct Sums {
  std::array<std::array<double, kRows>, kCropTokens> with{};
  std::array<double, kCropTokens> with_before{}, of_before{};
};

Crop crop_of(const PlacedTokens& tokens, const PlacedTokens& before, std::int64_t rows, std::int64_t columns,
             std::int64_t index) {
  const std::int64_t across = crops_along(columns);
  const std::int64_t top = index / across * kCropEdge, left = index % across * kCropEdge;
  const std::int32_t* end = tokens.places + tokens.embeddings.rows;
  const std::int32_t* before_end = before.places + before.embeddings.rows;
  Crop crop;
  for (std::int64_t y = top; y < std::min(top + kCropEdge, rows); ++y) {
    const std::int64_t last = y * columns + std::min(left + kCropEdge, columns);
    const std::int32_t* at = std::lower_bound(tokens.places, end, y * columns + left);
    for (; at != end && *at < last; ++at) {
      const std::int32_t* same = std::lower_bound(before.places, before_end, *at);
      const auto i = static_cast<std::size_t>(crop.tokens++);
      crop.rows[i] = at - tokens.places;
      crop.before[i] = same != before_end && *same == *at ? same - before.places : -1;
    }
  }
  return crop;
}

template <typename T>
VIGIL_INLINE void widen(const T* from, std::int64_t count, float* to) {
#pragma omp simd
  for (std::int64_t e = 0; e < count; ++e) to[e] = to_float(from[e]);
}

/// Products of one part with four others.
VIGIL_INLINE void multiply(const float* one, const float* others, std::int64_t count, double* sums) {
  float a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (std::int64_t e = 0; e < count; ++e) {
    a += one[e] * others[e];
    b += one[e] * others[e + kPart];
    c += one[e] * others[e + 2 * kPart];
    d += one[e] * others[e + 3 * kPart];
  }
  sums[0] += double{a};
  sums[1] += double{b};
  sums[2] += double{c};
  sums[3] += double{d};
}

template <typename T>
VIGIL_INLINE void add_up(ConstMatrix tokens, ConstMatrix before, const Crop& crop, Sums& sums) {
  alignas(64) float parts[kRows * kPart] = {};
  alignas(64) float past[kPart];
  for (std::int64_t begin = 0; begin < tokens.cols; begin += kPart) {
    const std::int64_t count = std::min(kPart, tokens.cols - begin);
    for (std::int64_t i = 0; i < crop.tokens; ++i) {
      const auto at = static_cast<std::size_t>(i);
      float* part = parts + i * kPart;
      widen(tokens.row<T>(crop.rows[at]) + begin, count, part);
      for (std::int64_t k = 0; k <= i; k += kAtOnce)
        multiply(part, parts + k * kPart, count, sums.with[at].data() + k);
      if (crop.before[at] < 0) continue;
      widen(before.row<T>(crop.before[at]) + begin, count, past);
      float product = 0, squares = 0;
#pragma omp simd reduction(+ : product, squares)
      for (std::int64_t e = 0; e < count; ++e) {
        product += part[e] * past[e];
        squares += past[e] * past[e];
      }
      sums.with_before[at] += double{product};
      sums.of_before[at] += double{squares};
    }
  }
}

VIGIL_SIMD void add_up_f32(ConstMatrix tokens, ConstMatrix before, const Crop& crop, Sums& sums) {
  add_up<float>(tokens, before, crop, sums);
}

VIGIL_SIMD void add_up_bf16(ConstMatrix tokens, ConstMatrix before, const Crop& crop, Sums& sums) {
  add_up<bf16>(tokens, before, crop, sums);
}

void tell(const Crop& crop, const Sums& sums, float* to_before, float* spread) {
  constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
  const auto tokens = static_cast<std::size_t>(crop.tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    const double own = sums.with[i][i];
    float& past = to_before[crop.rows[i]];
    float& apart = spread[crop.rows[i]];
    past = apart = kUnknown;
    if (!has_direction(own)) continue;
    if (has_direction(sums.of_before[i]))
      past = static_cast<float>(sums.with_before[i] / std::sqrt(own * sums.of_before[i]));
    std::array<double, kCropTokens> alike{};
    std::size_t count = 0;
    double sum = 0;
    for (std::size_t k = 0; k < tokens; ++k) {
      if (!has_direction(sums.with[k][k])) continue;
      alike[count] = sums.with[std::max(i, k)][std::min(i, k)] / std::sqrt(own * sums.with[k][k]);
      sum += alike[count++];
    }
    const auto counted = static_cast<double>(count);
    double squares = 0;
    for (std::size_t k = 0; k < count; ++k) squares += std::pow(alike[k] - sum / counted, 2);
    apart = static_cast<float>(squares / counted);
  }
}

}  // namespace

void cpu::token_similarity(Stream& stream, const PlacedTokens& tokens, const PlacedTokens& before,
                           std::int64_t rows, std::int64_t columns, float* to_before, float* spread) {
  parallel_for(stream, crops_along(rows) * crops_along(columns), [&](std::int64_t index) {
    const Crop crop = crop_of(tokens, before, rows, columns, index);
    if (crop.tokens == 0) return;
    Sums sums;
    if (tokens.embeddings.dtype == DType::f32) {
      add_up_f32(tokens.embeddings, before.embeddings, crop, sums);
    } else {
      add_up_bf16(tokens.embeddings, before.embeddings, crop, sums);
    }
    tell(crop, sums, to_before, spread);
  });
}

}  // namespace vigil::kernels
