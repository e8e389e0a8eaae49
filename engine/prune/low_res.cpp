#include "engine/prune/low_res.h"

#include <algorithm>
#include <cstdint>

namespace vigil::prune {
namespace {

constexpr float kRed = 0.299F, kGreen = 0.587F, kBlue = 0.114F;

/// So many lines of bytes can be added up in 16 bits.
constexpr std::size_t kLines = 256;

void add_line(const std::uint8_t* line, std::size_t bytes, std::uint16_t* sums) {
  for (std::size_t i = 0; i < bytes; ++i) sums[i] = static_cast<std::uint16_t>(sums[i] + line[i]);
}

}  // namespace

void LowRes::resize(std::size_t to_width, std::size_t to_height) {
  width = to_width;
  height = to_height;
  for (std::vector<float>& values : channels) values.resize(width * height);
}

void low_res_of(const model::PictureView& picture, int edge_pixels, LowRes& to) {
  const auto edge = static_cast<std::size_t>(edge_pixels);
  const std::size_t bytes = 3 * static_cast<std::size_t>(picture.width);
  to.resize(static_cast<std::size_t>(picture.width) / edge, static_cast<std::size_t>(picture.height) / edge);
  // Lines are added up first, byte by byte, which is most of the work and fit for vector instructions.
  std::vector<std::uint16_t> sums(bytes);
  const float scale = 1 / static_cast<float>(edge * edge);
  for (std::size_t row = 0; row < to.height; ++row) {
    float* luma = to.channels[0].data() + row * to.width;
    float* red = to.channels[1].data() + row * to.width;
    float* blue = to.channels[2].data() + row * to.width;
    for (float* values : {luma, red, blue}) std::fill_n(values, to.width, 0.0F);
    for (std::size_t first = 0; first < edge; first += kLines) {
      std::fill(sums.begin(), sums.end(), std::uint16_t{0});
      for (std::size_t y = first; y < std::min(edge, first + kLines); ++y)
        add_line(picture.rgb + (row * edge + y) * bytes, bytes, sums.data());
      const std::uint16_t* from = sums.data();
      for (std::size_t x = 0; x < to.width; ++x) {
        std::uint32_t r = 0, g = 0, b = 0;
        for (std::size_t i = 0; i < edge; ++i, from += 3) {
          r += from[0];
          g += from[1];
          b += from[2];
        }
        red[x] += static_cast<float>(r) * scale;
        luma[x] += static_cast<float>(g) * scale;
        blue[x] += static_cast<float>(b) * scale;
      }
    }
    for (std::size_t x = 0; x < to.width; ++x) {
      luma[x] = kRed * red[x] + kGreen * luma[x] + kBlue * blue[x];
      red[x] -= luma[x];
      blue[x] -= luma[x];
    }
  }
}

void shrink(const LowRes& from, std::size_t edge, LowRes& to) {
  to.resize(from.width / edge, from.height / edge);
  const float scale = 1 / static_cast<float>(edge * edge);
  for (std::size_t channel = 0; channel < LowRes::kChannels; ++channel) {
    const float* values = from.channels[channel].data();
    std::vector<float>& means = to.channels[channel];
    std::fill(means.begin(), means.end(), 0.0F);
    for (std::size_t y = 0; y < from.height; ++y)
      for (std::size_t x = 0; x < to.width; ++x)
        for (std::size_t i = 0; i < edge; ++i)
          means[y / edge * to.width + x] += values[y * from.width + x * edge + i];
    for (float& mean : means) mean *= scale;
  }
}

}  // namespace vigil::prune
