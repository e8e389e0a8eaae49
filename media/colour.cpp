#include "media/colour.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vigil::media {
namespace {

/// Pixels that are converted plane by plane before they are interleaved; small enough for the first cache.
constexpr int kBlock = 64;

// (a * 2^6 * factor * 2^13) >> 16 leaves 3 bits below the point and is one instruction (pmulhw) for eight or
// sixteen pixels; all intermediate values fit 16 bits.
inline std::int16_t scaled(std::int16_t value, std::int16_t factor) {
  return static_cast<std::int16_t>((static_cast<std::int16_t>(value * 64) * factor) >> 16);
}

inline std::uint8_t clamped(std::int16_t value) {
  return static_cast<std::uint8_t>(std::clamp<int>(value >> 3, 0, 255));
}

[[gnu::always_inline]] inline void convert(const std::uint8_t* __restrict y,
                                           const std::uint8_t* __restrict cb,
                                           const std::uint8_t* __restrict cr, int count,
                                           const ColourMatrix& matrix, std::uint8_t* __restrict rgb) {
  alignas(64) std::uint8_t red[kBlock];
  alignas(64) std::uint8_t green[kBlock];
  alignas(64) std::uint8_t blue[kBlock];
  const ColourMatrix m = matrix;
  for (int i = 0; i < count; ++i) {
    const auto luma =
        static_cast<std::int16_t>(scaled(static_cast<std::int16_t>(y[i] - m.black), m.luma) + 4);
    const auto u = static_cast<std::int16_t>(cb[i] - 128);
    const auto v = static_cast<std::int16_t>(cr[i] - 128);
    red[i] = clamped(static_cast<std::int16_t>(luma + scaled(v, m.red_from_cr)));
    green[i] =
        clamped(static_cast<std::int16_t>(luma - scaled(u, m.green_from_cb) - scaled(v, m.green_from_cr)));
    blue[i] = clamped(static_cast<std::int16_t>(luma + scaled(u, m.blue_from_cb)));
  }
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    rgb[3 * i] = red[i];
    rgb[3 * i + 1] = green[i];
    rgb[3 * i + 2] = blue[i];
  }
}

[[gnu::always_inline]] inline void convert_row(const std::uint8_t* y, const std::uint8_t* cb,
                                               const std::uint8_t* cr, int width, const ColourMatrix& matrix,
                                               std::uint8_t* rgb) {
  int x = 0;
  for (; x + kBlock <= width; x += kBlock)
    convert(y + x, cb + x, cr + x, kBlock, matrix, rgb + std::ptrdiff_t{3} * x);
  if (x < width) convert(y + x, cb + x, cr + x, width - x, matrix, rgb + std::ptrdiff_t{3} * x);
}

void convert_row_portable(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
                          const ColourMatrix& matrix, std::uint8_t* rgb) {
  convert_row(y, cb, cr, width, matrix, rgb);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void convert_row_avx2(const std::uint8_t* y, const std::uint8_t* cb,
                                              const std::uint8_t* cr, int width, const ColourMatrix& matrix,
                                              std::uint8_t* rgb) {
  convert_row(y, cb, cr, width, matrix, rgb);
}
#endif

std::int16_t fixed_point(double factor) {
  return static_cast<std::int16_t>(std::lround(factor * 8192));
}

}  // namespace

ColourMatrix colour_matrix(const int* coefficients, bool full_range) {
  // FFmpeg's factors carry the 255/224 of limited-range chroma.
  const double chroma = (full_range ? 224.0 / 255.0 : 1.0) / 65536.0;
  ColourMatrix matrix;
  matrix.luma = fixed_point(full_range ? 1.0 : 255.0 / 219.0);
  matrix.black = full_range ? 0 : 16;
  matrix.red_from_cr = fixed_point(coefficients[0] * chroma);
  matrix.blue_from_cb = fixed_point(coefficients[1] * chroma);
  matrix.green_from_cb = fixed_point(coefficients[2] * chroma);
  matrix.green_from_cr = fixed_point(coefficients[3] * chroma);
  return matrix;
}

void rgb_row(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
             const ColourMatrix& matrix, std::uint8_t* rgb) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return convert_row_avx2(y, cb, cr, width, matrix, rgb);
#endif
  convert_row_portable(y, cb, cr, width, matrix, rgb);
}

}  // namespace vigil::media
