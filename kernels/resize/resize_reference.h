// `resize_bicubic` as its formula says it: each sample is weighted over the whole axis, in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace vigil::kernels::reference {

/// One axis: `lines` lines of `in` samples, sample i of line l at in_values[l * line_step + i * sample_step];
/// the result is [lines, out], not rounded.
template <typename T>
std::vector<double> resize_axis(const T* in_values, int lines, int line_step, int in, int sample_step,
                                int out) {
  const auto cubic = [](double t) {
    t = std::abs(t);
    if (t < 1) return 1.5 * t * t * t - 2.5 * t * t + 1;
    return t < 2 ? -0.5 * t * t * t + 2.5 * t * t - 4 * t + 2 : 0.0;
  };
  const double scale = static_cast<double>(in) / out;
  std::vector<double> result;
  for (int line = 0; line < lines; ++line)
    for (int x = 0; x < out; ++x) {
      double sum = 0;
      double weights = 0;
      for (int i = 0; i < in; ++i) {
        const double weight = cubic((i + 0.5 - scale * (x + 0.5)) / std::max(scale, 1.0));
        sum += weight * in_values[static_cast<std::ptrdiff_t>(line) * line_step +
                                  static_cast<std::ptrdiff_t>(i) * sample_step];
        weights += weight;
      }
      result.push_back(sum / weights);
    }
  return result;
}

/// One channel of the result, [out_height, out_width]: columns, rounding to 8 bits, rows.
inline std::vector<double> resize_bicubic(const std::uint8_t* in, int in_height, int in_width, int out_height,
                                          int out_width, int channels, int channel) {
  std::vector<double> columns =
      resize_axis(in + channel, in_height, in_width * channels, in_width, channels, out_width);
  for (double& value : columns) value = std::clamp(std::floor(value + 0.5), 0.0, 255.0);
  const std::vector<double> rows =
      resize_axis(columns.data(), out_width, 1, in_height, out_width, out_height);
  std::vector<double> result;
  for (int y = 0; y < out_height; ++y)
    for (int x = 0; x < out_width; ++x) {
      const auto at =
          static_cast<std::size_t>(x) * static_cast<std::size_t>(out_height) + static_cast<std::size_t>(y);
      result.push_back(std::clamp(rows[at], 0.0, 255.0));
    }
  return result;
}

}  // namespace vigil::kernels::reference
