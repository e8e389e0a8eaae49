#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/resize/resize.h"

namespace vigil::kernels {
namespace {

/// Keys, "Cubic convolution interpolation for digital image processing", equation 4, with a = -1/2.
double keys(double x) {
  constexpr double a = -0.5;
  x = x < 0 ? -x : x;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

/// The filter of one axis: output i is the sum over `taps` inputs from first[i] of weights[i * taps + j] /
/// 2^bits.
struct Filter {
  int taps = 0;
  unsigned bits = 0;
  std::vector<int> first;
  std::vector<int> count;
  std::vector<std::int32_t> weights;
};

/// Fractional bits such that the largest weight stays below 2^15.
unsigned torch_bits(double largest) {
  unsigned bits = 0;
  while (bits < 22 && std::floor(0.5 + largest * static_cast<double>(1U << (bits + 1U))) < 0x1p15) ++bits;
  return bits;
}

Filter make_filter(int in, int out, ResizeLike like) {
  const double scale = static_cast<double>(in) / out;
  const double widening = std::max(scale, 1.0);
  const double support = 2.0 * widening;
  Filter filter;
  filter.taps = static_cast<int>(std::ceil(support)) * 2 + 1;
  std::vector<double> exact(static_cast<std::size_t>(out) * static_cast<std::size_t>(filter.taps));
  double largest = 0;
  for (int i = 0; i < out; ++i) {
    const double centre = scale * (i + 0.5);
    const int begin = std::max(static_cast<int>(std::floor(centre - support + 0.5)), 0);
    const int end = std::min(static_cast<int>(std::floor(centre + support + 0.5)), in);
    filter.first.push_back(begin);
    filter.count.push_back(end - begin);
    double* weights = exact.data() + static_cast<std::ptrdiff_t>(i) * filter.taps;
    double sum = 0;
    for (int j = 0; j < end - begin; ++j) {
      weights[j] = keys((j + begin - centre + 0.5) * (1.0 / widening));
      sum += weights[j];
    }
    for (int j = 0; j < end - begin; ++j) {
      weights[j] = like == ResizeLike::pillow ? weights[j] * (1.0 / sum) : weights[j] / sum;
      largest = std::max(largest, weights[j]);
    }
  }
  filter.bits = like == ResizeLike::pillow ? 22U : torch_bits(largest);
  const auto one = static_cast<double>(1U << filter.bits);
  for (const double weight : exact) {
    filter.weights.push_back(static_cast<std::int32_t>(weight < 0 ? std::ceil(weight * one - 0.5)
                                                                  : std::floor(weight * one + 0.5)));
  }
  return filter;
}

/// Pillow (13; releases before it never do this) takes the rows first where far more of them go than of the
/// columns.
bool rows_first(int in_height, int in_width, int out_height, int out_width, ResizeLike like) {
  return like == ResizeLike::pillow && out_height < in_height &&
         in_height - out_height > 2 * (in_width - out_width);
}

VIGIL_INLINE std::uint8_t clamped(std::int32_t sum, unsigned bits) {
  return static_cast<std::uint8_t>(std::clamp(sum >> bits, 0, 255));
}

template <std::ptrdiff_t kChannels>
VIGIL_INLINE void scale_row(const Filter& filter, const std::uint8_t* in, std::uint8_t* out, int out_width) {
  for (int x = 0; x < out_width; ++x) {
    const std::uint8_t* pixel =
        in + static_cast<std::ptrdiff_t>(filter.first[static_cast<std::size_t>(x)]) * kChannels;
    const std::int32_t* weights = filter.weights.data() + static_cast<std::ptrdiff_t>(x) * filter.taps;
    std::int32_t sums[static_cast<std::size_t>(kChannels)];
    for (std::int32_t& sum : sums) sum = 1 << (filter.bits - 1U);
    for (int j = 0; j < filter.count[static_cast<std::size_t>(x)]; ++j) {
      for (std::ptrdiff_t c = 0; c < kChannels; ++c) sums[c] += pixel[j * kChannels + c] * weights[j];
    }
    for (std::ptrdiff_t c = 0; c < kChannels; ++c) out[x * kChannels + c] = clamped(sums[c], filter.bits);
  }
}

void scale_row(const Filter& filter, const std::uint8_t* in, std::uint8_t* out, int out_width, int channels) {
  switch (channels) {
    case 1:
      return scale_row<1>(filter, in, out, out_width);
    case 2:
      return scale_row<2>(filter, in, out, out_width);
    case 3:
      return scale_row<3>(filter, in, out, out_width);
    default:
      return scale_row<4>(filter, in, out, out_width);
  }
}

/// One output row from the rows of `in` (rows of `bytes`) that the filter names; `sums` is working memory of
/// `bytes` values.
VIGIL_SIMD void scale_column(const Filter& filter, int y, const std::uint8_t* in, std::int64_t bytes,
                             std::int32_t* sums, std::uint8_t* out) {
  const std::int32_t* weights = filter.weights.data() + static_cast<std::ptrdiff_t>(y) * filter.taps;
  const unsigned bits = filter.bits;
  const std::int32_t half = bits > 0 ? 1 << (bits - 1U) : 0;
  for (std::int64_t i = 0; i < bytes; ++i) sums[i] = half;
  for (int j = 0; j < filter.count[static_cast<std::size_t>(y)]; ++j) {
    const std::uint8_t* row = in + (filter.first[static_cast<std::size_t>(y)] + j) * bytes;
    const std::int32_t weight = weights[j];
    for (std::int64_t i = 0; i < bytes; ++i) sums[i] += row[i] * weight;
  }
  for (std::int64_t i = 0; i < bytes; ++i) out[i] = clamped(sums[i], bits);
}

}  // namespace

void resize_bicubic(Stream& stream, const std::uint8_t* in, int in_height, int in_width, std::uint8_t* out,
                    int out_height, int out_width, int channels, ResizeLike like) {
  if (in_height <= 0 || in_width <= 0 || out_height <= 0 || out_width <= 0 || channels < 1 || channels > 4)
    throw std::invalid_argument("resize_bicubic: sizes must be positive, channels 1 to 4");
  constexpr std::int64_t kRows = 16;
  const auto scale_width = [&](const std::uint8_t* from, std::uint8_t* to, int height) {
    const Filter filter = make_filter(in_width, out_width, like);
    const std::int64_t in_bytes = std::int64_t{in_width} * channels;
    const std::int64_t out_bytes = std::int64_t{out_width} * channels;
    parallel_blocks(stream, height, kRows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t y = begin; y < end; ++y)
        scale_row(filter, from + y * in_bytes, to + y * out_bytes, out_width, channels);
    });
  };
  const auto scale_height = [&](const std::uint8_t* from, std::uint8_t* to, int width) {
    const Filter filter = make_filter(in_height, out_height, like);
    const std::int64_t bytes = std::int64_t{width} * channels;
    parallel_blocks(stream, out_height, kRows, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int32_t> sums(static_cast<std::size_t>(bytes));
      for (std::int64_t y = begin; y < end; ++y)
        scale_column(filter, static_cast<int>(y), from, bytes, sums.data(), to + y * bytes);
    });
  };
  const auto picture = [&](int height, int width) {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
                                     static_cast<std::size_t>(channels));
  };
  if (in_width == out_width && in_height == out_height) {
    std::memcpy(out, in,
                static_cast<std::size_t>(in_height) * static_cast<std::size_t>(in_width) *
                    static_cast<std::size_t>(channels));
  } else if (in_height == out_height) {
    scale_width(in, out, in_height);
  } else if (in_width == out_width) {
    scale_height(in, out, in_width);
  } else if (rows_first(in_height, in_width, out_height, out_width, like)) {
    std::vector<std::uint8_t> between = picture(out_height, in_width);
    scale_height(in, between.data(), in_width);
    scale_width(between.data(), out, out_height);
  } else {
    std::vector<std::uint8_t> between = picture(in_height, out_width);
    scale_width(in, between.data(), in_height);
    scale_height(between.data(), out, out_width);
  }
}

}  // namespace vigil::kernels
