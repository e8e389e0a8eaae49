#include "media/group_motion.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace vigil::media {
namespace {

/// No codec has smaller blocks.
constexpr int kBlock = 4;
/// Blocks of the 16 x 16 pixels that are coded alike.
constexpr std::uint32_t kMacroblock = 16;

std::size_t index(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

/// Which of `cells` equal parts of `length` pixels holds this pixel; the first of them, if it holds some.
int cell_of(int pixel, int length, int cells) {
  return static_cast<int>(static_cast<std::int64_t>(pixel) * cells / length);
}

/// The last one of those that hold the pixels before `end`.
int last_cell_of(int end, int length, int cells) {
  return std::max(cell_of(end - 1, length, cells), cell_of(end, length, cells) - 1);
}

/// Along one edge of a picture: which cells each block touches, and how many blocks touch each cell.
struct Touched {
  Touched(int length, int count) : blocks(static_cast<std::size_t>(count), 0) {
    for (int begin = 0; begin < length; begin += kBlock) {
      const std::pair<int, int> touched{cell_of(begin, length, count),
                                        last_cell_of(std::min(begin + kBlock, length), length, count)};
      cells.push_back(touched);
      for (int cell = touched.first; cell <= touched.second; ++cell) ++blocks[static_cast<std::size_t>(cell)];
    }
  }
  /// Of each block, the first cell and the last one.
  std::vector<std::pair<int, int>> cells;
  std::vector<std::uint32_t> blocks;
};

/// Behind the last cell that has some of the pixels before `end`, be it a part of one.
int end_of(int end, int length, int cells) {
  return static_cast<int>((static_cast<std::int64_t>(end) * cells + length - 1) / length);
}

/// How many pixels of [begin, end) lie in a cell, of which it may hold parts.
float overlap(int begin, int end, int cell, int length, int cells) {
  const double edge = static_cast<double>(length) / cells;
  return static_cast<float>(std::min<double>(end, (cell + 1) * edge) - std::max<double>(begin, cell * edge));
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
    const int last_row = last_cell_of(bottom, frame.height, rows);
    const int last_column = last_cell_of(right, frame.width, columns);
    for (int row = cell_of(top, frame.height, rows); row <= last_row; ++row)
      for (int column = cell_of(left, frame.width, columns); column <= last_column; ++column)
        longest[index(row, column, columns)] = std::max(longest[index(row, column, columns)], length);
  }

  const Touched in_columns(frame.width, columns);
  const Touched in_rows(frame.height, rows);
  std::vector<std::uint32_t> bare(longest.size(), 0);
  for (int y = 0; y < high; ++y)
    for (int x = 0; x < wide; ++x) {
      if (covered[index(y, x, wide)] != 0) continue;
      const auto& [first_row, last_row] = in_rows.cells[static_cast<std::size_t>(y)];
      const auto& [first_column, last_column] = in_columns.cells[static_cast<std::size_t>(x)];
      for (int row = first_row; row <= last_row; ++row)
        for (int column = first_column; column <= last_column; ++column) ++bare[index(row, column, columns)];
    }
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      const std::size_t cell = index(row, column, columns);
      const std::uint32_t blocks =
          in_rows.blocks[static_cast<std::size_t>(row)] * in_columns.blocks[static_cast<std::size_t>(column)];
      if (bare[cell] >= kMacroblock || (bare[cell] > 0 && 4 * bare[cell] >= blocks))
        longest[cell] = std::numeric_limits<float>::infinity();
    }
  return longest;
}

std::vector<float> group_residual(const FrameMotion& frame, int rows, int columns) {
  if (frame.intra || frame.width <= 0 || frame.height <= 0 || rows <= 0 || columns <= 0 || !frame.measured)
    return {};
  std::vector<float> sums(index(rows, 0, columns), 0);
  for (const BlockResidual& block : frame.residual) {
    const int left = std::max(0, int{block.x});
    const int top = std::max(0, int{block.y});
    const int right = std::min(frame.width, block.x + block.width);
    const int bottom = std::min(frame.height, block.y + block.height);
    if (left >= right || top >= bottom) continue;
    const float density =
        block.difference / (static_cast<float>(right - left) * static_cast<float>(bottom - top));
    if (density <= 0) continue;
    const int first_row = cell_of(top, frame.height, rows), end_row = end_of(bottom, frame.height, rows);
    const int first_column = cell_of(left, frame.width, columns);
    const int end_column = end_of(right, frame.width, columns);
    for (int row = first_row; row < end_row; ++row) {
      const float high = overlap(top, bottom, row, frame.height, rows);
      if (high <= 0) continue;
      for (int column = first_column; column < end_column; ++column) {
        const float wide = overlap(left, right, column, frame.width, columns);
        if (wide > 0) sums[index(row, column, columns)] += density * high * wide;
      }
    }
  }
  return sums;
}

}  // namespace vigil::media
