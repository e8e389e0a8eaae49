// Pictures that tests draw, and what a codec would tell of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "engine/prune/pruning_policy.h"

namespace vigil::prune::testing {

/// A grey picture of `rows` x `columns` groups of 28 pixels.
struct Canvas {
  Canvas(int rows, int columns, std::uint8_t grey = 100)
      : width(28 * columns), height(28 * rows), rgb(static_cast<std::size_t>(3 * width * height), grey) {}

  /// Fills pixels with a grey.
  void box(int left, int top, int wide, int high, std::uint8_t grey) {
    for (int y = top; y < top + high; ++y) std::fill_n(rgb.begin() + 3 * (y * width + left), 3 * wide, grey);
  }
  /// Adds evenly distributed noise of at most so much to each pixel.
  void noise(int most, std::mt19937& random) {
    std::uniform_int_distribution<int> by(-most, most);
    for (std::size_t i = 0; i < rgb.size(); i += 3) {
      const int grey = std::clamp(int{rgb[i]} + by(random), 0, 255);
      std::fill_n(rgb.begin() + static_cast<std::ptrdiff_t>(i), 3, static_cast<std::uint8_t>(grey));
    }
  }
  /// Adds so much to every pixel.
  void light(int by) {
    for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(std::clamp(value + by, 0, 255));
  }
  model::PictureView view() const { return {rgb.data(), width, height}; }

  int width;
  int height;
  std::vector<std::uint8_t> rgb;
};

inline base::GridMask mask(int rows, int columns, const std::vector<int>& groups) {
  base::GridMask mask = base::GridMask::none(rows, columns);
  for (const int group : groups) mask.add(group);
  return mask;
}

/// A patch of pictures without motion.
inline std::vector<SampledPicture> still(const std::vector<const Canvas*>& pictures) {
  std::vector<SampledPicture> frames;
  for (const Canvas* picture : pictures) frames.push_back({picture->view(), {}});
  return frames;
}

inline base::GridMask choose(PruningPolicy& policy, double seconds,
                             const std::vector<const Canvas*>& pictures) {
  return policy.choose(seconds, still(pictures)).encoded;
}

}  // namespace vigil::prune::testing
