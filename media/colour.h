// From planar YCbCr with full chroma resolution to packed RGB, a row at a time.
#pragma once

#include <cstdint>

namespace vigil::media {

/// A YCbCr matrix in the fixed point of `rgb_row`: factors in units of 2^-13.
struct ColourMatrix {
  std::int16_t luma = 0;
  std::int16_t red_from_cr = 0;
  std::int16_t green_from_cb = 0;
  std::int16_t green_from_cr = 0;
  std::int16_t blue_from_cb = 0;
  /// What black's luma is: 16 or 0.
  std::int16_t black = 0;
};

/// `coefficients`: the four of FFmpeg's sws_getCoefficients (Cr to red, Cb to blue, Cb to green, Cr to green;
/// in units of 2^-16, for limited range). `full_range`: whether luma and chroma use all of 0…255.
ColourMatrix colour_matrix(const int* coefficients, bool full_range);

/// Converts `width` pixels of three planes to 3 bytes each. At most 1 away from the exact result, rounded.
void rgb_row(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
             const ColourMatrix& matrix, std::uint8_t* rgb);

}  // namespace vigil::media
