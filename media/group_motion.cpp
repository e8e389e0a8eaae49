#include "media/group_motion.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace vigil::media {
namespace {

/// No codec has smaller blocks.
constexpr int kBlock = 4;

std::size_t index(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

/// Which of `cells` equal parts of `length` pixels holds this pixel.
int cell_of(int pixel, int length, int cells) {
  return static_cast<int>(static_cast<std::int64_t>(pixel) * cells / length);
}

}  // namespace

std::vector<float> group_motion(const FrameMotion& frame, int rows, int columns) {
  if (frame.intra || frame.width <= 0 || frame.height <= 0 || rows <= 0 || columns <= 0) return {};
  std::vector<float> longest(index(rows, 0, columns), 0);
  const int wide = (frame.width + kBlock - 1) / kBlock;
  const int high = (frame.height + kBlock - 1) / kBlock;
  std::vector<std::uint8_t> covered(index(high, 0, wide), 0);
  for (const MotionVector& v : frame.vectors) {
    const int left = std::max(0, int{v.x});
    const int top = std::max(0, int{v.y});
    const int right = std::min(frame.width, v.x + v.width);
    const int bottom = std::min(frame.height, v.y + v.height);
    if (left >= right || top >= bottom) continue;
    for (int y = top / kBlock; y * kBlock < bottom; ++y)
      std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(index(y, left / kBlock, wide)),
                  (right + kBlock - 1) / kBlock - left / kBlock, std::uint8_t{1});
    const float length = std::hypot(v.dx_pixels(), v.dy_pixels());
    const int last_row = cell_of(bottom - 1, frame.height, rows);
    const int last_column = cell_of(right - 1, frame.width, columns);
    for (int row = cell_of(top, frame.height, rows); row <= last_row; ++row)
      for (int column = cell_of(left, frame.width, columns); column <= last_column; ++column)
        longest[index(row, column, columns)] = std::max(longest[index(row, column, columns)], length);
  }

  std::vector<std::uint16_t> bare(longest.size(), 0), blocks(longest.size(), 0);
  for (int y = 0; y < high; ++y) {
    const int row = cell_of(std::min(y * kBlock + kBlock / 2, frame.height - 1), frame.height, rows);
    for (int x = 0; x < wide; ++x) {
      const int column = cell_of(std::min(x * kBlock + kBlock / 2, frame.width - 1), frame.width, columns);
      const std::size_t cell = index(row, column, columns);
      ++blocks[cell];
      bare[cell] = static_cast<std::uint16_t>(bare[cell] + (covered[index(y, x, wide)] == 0));
    }
  }
  for (std::size_t i = 0; i < longest.size(); ++i)
    if (bare[i] > 0 && 4 * bare[i] >= blocks[i]) longest[i] = std::numeric_limits<float>::infinity();
  return longest;
}

}  // namespace vigil::media
