#include "media/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "media/ffmpeg.h"

namespace vigil::media {
namespace {

struct Weights {
  double red;
  double blue;
};

// ITU-R BT.601, BT.709 and BT.2020: the definition, from the weights of red and blue in luma.
std::array<double, 3> exact(int y, int cb, int cr, Weights weights, bool full) {
  const double luma = full ? y / 255.0 : (y - 16) / 219.0;
  const double u = (cb - 128) / (full ? 255.0 : 224.0) * 2 * (1 - weights.blue);
  const double v = (cr - 128) / (full ? 255.0 : 224.0) * 2 * (1 - weights.red);
  const double green = 1 - weights.red - weights.blue;
  return {luma + v, luma - (weights.blue * u + weights.red * v) / green, luma + u};
}

TEST(Colour, IsWithinOneOfTheDefinition) {
  struct Case {
    int matrix;
    Weights weights;
  };
  for (const Case& one : {Case{SWS_CS_ITU601, {0.299, 0.114}}, Case{SWS_CS_ITU709, {0.2126, 0.0722}},
                          Case{SWS_CS_BT2020, {0.2627, 0.0593}}}) {
    for (const bool full : {false, true}) {
      const ColourMatrix matrix = colour_matrix(sws_getCoefficients(one.matrix), full);
      int worst = 0;
      for (int cb = 0; cb < 256; cb += 3) {
        for (int cr = 0; cr < 256; cr += 3) {
          std::array<std::uint8_t, 256> y{};
          std::array<std::uint8_t, 256> u{};
          std::array<std::uint8_t, 256> v{};
          for (std::size_t i = 0; i < 256; ++i) y[i] = static_cast<std::uint8_t>(i);
          u.fill(static_cast<std::uint8_t>(cb));
          v.fill(static_cast<std::uint8_t>(cr));
          std::array<std::uint8_t, 768> rgb{};
          rgb_row(y.data(), u.data(), v.data(), 256, matrix, rgb.data());
          for (int i = 0; i < 256; ++i) {
            const std::array<double, 3> want = exact(i, cb, cr, one.weights, full);
            for (std::size_t c = 0; c < 3; ++c) {
              const long value = std::clamp(std::lround(want[c] * 255), 0L, 255L);
              worst = std::max(worst,
                               std::abs(static_cast<int>(value) - rgb[static_cast<std::size_t>(i) * 3 + c]));
            }
          }
        }
      }
      EXPECT_LE(worst, 1) << "matrix " << one.matrix << " full " << full;
    }
  }
}

TEST(Colour, WritesExactlyItsPixelsAtAnyWidth) {
  const ColourMatrix matrix = colour_matrix(sws_getCoefficients(SWS_CS_ITU601), false);
  for (const int width : {1, 2, 3, 15, 63, 64, 65, 127, 130, 449}) {
    const auto count = static_cast<std::size_t>(width);
    const std::vector<std::uint8_t> y(count, 235);
    const std::vector<std::uint8_t> chroma(count, 128);
    std::vector<std::uint8_t> rgb(count * 3 + 8, 77);
    rgb_row(y.data(), chroma.data(), chroma.data(), width, matrix, rgb.data());
    for (std::size_t i = 0; i < rgb.size(); ++i)
      EXPECT_EQ(rgb[i], i < count * 3 ? 255 : 77) << width << " at " << i;
  }
}

}  // namespace
}  // namespace vigil::media
