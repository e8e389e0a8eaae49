// Which cells of a grid are meant.
#pragma once

#include <cstdint>
#include <vector>

namespace vigil::base {

/// Cells are counted along the rows: cell `y * width + x`. Not thread-safe; a copy is one's own.
class GridMask {
 public:
  /// Of no cells.
  GridMask() = default;
  /// All cells of a grid, or none of them. Throws std::invalid_argument for a negative size, and for more
  /// cells than an int32 counts.
  static GridMask all(std::int64_t height, std::int64_t width) { return {height, width, true}; }
  static GridMask none(std::int64_t height, std::int64_t width) { return {height, width, false}; }

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  std::int64_t cells() const { return height_ * width_; }

  std::int64_t count() const { return count_; }
  bool has(std::int64_t cell) const { return (words_[word(cell)] & bit(cell)) != 0; }
  bool has(std::int64_t y, std::int64_t x) const { return has(y * width_ + x); }
  bool has_all() const { return count_ == cells(); }
  /// Whether it has all that the other has. Throws std::invalid_argument for one of another grid.
  bool has(const GridMask& other) const;

  void add(std::int64_t cell);
  void add(std::int64_t y, std::int64_t x) { add(y * width_ + x); }
  /// All that the other has. Throws std::invalid_argument for one of another grid.
  void add(const GridMask& other);
  /// Those that the other has, too. Throws std::invalid_argument for one of another grid.
  GridMask within(const GridMask& other) const;

  /// Those that it has, ascending.
  std::vector<std::int32_t> list() const;

  friend bool operator==(const GridMask&, const GridMask&) = default;

 private:
  GridMask(std::int64_t height, std::int64_t width, bool full);

  static std::size_t word(std::int64_t cell) { return static_cast<std::size_t>(cell) / 64; }
  static std::uint64_t bit(std::int64_t cell) { return std::uint64_t{1} << (cell % 64); }

  std::int64_t height_ = 0, width_ = 0, count_ = 0;
  /// Bits beyond the last cell are 0.
  std::vector<std::uint64_t> words_;
};

}  // namespace vigil::base
