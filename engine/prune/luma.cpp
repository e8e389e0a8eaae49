#include "engine/prune/luma.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>

namespace vigil::prune {

void luma_of(const model::PictureView& picture, Luma& to) {
  to.width = picture.width;
  to.height = picture.height;
  const auto pixels = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height);
  to.pixels.resize(pixels);
  const std::uint8_t* rgb = picture.rgb;
  // 0.299, 0.587 and 0.114 in 256ths.
  for (std::size_t i = 0; i < pixels; ++i, rgb += 3)
    to.pixels[i] = static_cast<std::uint8_t>((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) >> 8);
}

void difference(const Luma& a, const Luma& b, int patch, std::vector<float>& to) {
  const auto edge = static_cast<std::size_t>(patch);
  const auto width = static_cast<std::size_t>(a.width);
  const std::size_t columns = width / edge;
  const std::size_t rows = static_cast<std::size_t>(a.height) / edge;
  to.assign(columns * rows, 0);
  // Lines are added up first, pixel by pixel, which is all of the work and fit for vector instructions. A sum
  // of 256 times 255 still fits.
  constexpr std::size_t kLines = 256;
  std::vector<std::uint16_t> sums(width);
  const float scale = 1 / static_cast<float>(patch * patch);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t first = 0; first < edge; first += kLines) {
      std::fill(sums.begin(), sums.end(), std::uint16_t{0});
      for (std::size_t y = first; y < std::min(edge, first + kLines); ++y) {
        const std::uint8_t* p = a.pixels.data() + (row * edge + y) * width;
        const std::uint8_t* q = b.pixels.data() + (row * edge + y) * width;
        for (std::size_t x = 0; x < width; ++x)
          sums[x] = static_cast<std::uint16_t>(sums[x] + (std::max(p[x], q[x]) - std::min(p[x], q[x])));
      }
      for (std::size_t column = 0; column < columns; ++column) {
        const std::uint16_t* from = sums.data() + column * edge;
        to[row * columns + column] += static_cast<float>(std::accumulate(from, from + edge, 0U)) * scale;
      }
    }
  }
}

base::GridMask groups_above(const std::vector<float>& patches, const PatchGrid& grid, int width, int height,
                            float threshold) {
  base::GridMask groups = base::GridMask::none(height / grid.group(), width / grid.group());
  const int columns = width / grid.patch;
  for (std::size_t i = 0; i < patches.size(); ++i)
    if (patches[i] > threshold)
      groups.add(static_cast<int>(i) / columns / grid.merge, static_cast<int>(i) % columns / grid.merge);
  return groups;
}

void check_pictures(std::span<const SampledPicture> frames, const PatchGrid& grid) {
  if (frames.empty()) throw std::invalid_argument("a patch has at least one frame");
  const model::PictureView& first = frames.front().picture;
  if (first.width <= 0 || first.height <= 0 || first.width % grid.group() != 0 ||
      first.height % grid.group() != 0)
    throw std::invalid_argument("a picture of " + std::to_string(first.width) + "x" +
                                std::to_string(first.height) + " has no whole groups of " +
                                std::to_string(grid.group()) + " pixels");
  for (const SampledPicture& frame : frames)
    if (frame.picture.width != first.width || frame.picture.height != first.height)
      throw std::invalid_argument("the frames of a patch differ in size");
}

}  // namespace vigil::prune
