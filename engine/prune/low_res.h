// A picture as the means of small blocks: what is compared instead of its pixels.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/model/vision/picture.h"

namespace vigil::prune {

/// One number for each square of a picture and channel, rows of squares after each other.
struct LowRes {
  /// Luma (BT.601's weights, 0 to 255), red less luma, blue less luma.
  static constexpr std::size_t kChannels = 3;

  /// In squares.
  std::size_t width = 0;
  std::size_t height = 0;
  std::array<std::vector<float>, kChannels> channels;

  /// Sizes all channels; `values` keep their memory.
  void resize(std::size_t to_width, std::size_t to_height);
};

/// The mean of each square of `edge` x `edge` pixels. The edges of the picture are multiples of it.
void low_res_of(const model::PictureView& picture, int edge, LowRes& to);

/// The mean of each `edge` x `edge` squares. The edges of `from` are multiples of it.
void shrink(const LowRes& from, std::size_t edge, LowRes& to);

}  // namespace vigil::prune
