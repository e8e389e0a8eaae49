#include "base/grid_mask.h"

#include <bit>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

namespace vigil::base {

GridMask::GridMask(std::int64_t height, std::int64_t width, bool full) : height_(height), width_(width) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (height < 0 || width < 0 || (height > 0 && width > kMost / height))
    throw std::invalid_argument("no mask has a grid of " + std::to_string(height) + " x " +
                                std::to_string(width) + " cells");
  words_.assign(static_cast<std::size_t>((cells() + 63) / 64), full ? ~std::uint64_t{0} : 0);
  if (!full) return;
  count_ = cells();
  if (const std::int64_t rest = cells() % 64; rest > 0) words_.back() = bit(rest) - 1;
}

void GridMask::add(std::int64_t cell) {
  if (has(cell)) return;
  words_[word(cell)] |= bit(cell);
  ++count_;
}

void GridMask::add(const GridMask& other) {
  if (other.height_ != height_ || other.width_ != width_)
    throw std::invalid_argument("masks of different grids have no union");
  count_ = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    words_[i] |= other.words_[i];
    count_ += std::popcount(words_[i]);
  }
}

GridMask GridMask::within(const GridMask& other) const {
  if (other.height_ != height_ || other.width_ != width_)
    throw std::invalid_argument("masks of different grids have no cells in common");
  GridMask common = *this;
  common.count_ = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    common.words_[i] &= other.words_[i];
    common.count_ += std::popcount(common.words_[i]);
  }
  return common;
}

bool GridMask::has(const GridMask& other) const {
  if (other.height_ != height_ || other.width_ != width_)
    throw std::invalid_argument("masks of different grids cannot be compared");
  for (std::size_t i = 0; i < words_.size(); ++i)
    if ((other.words_[i] & ~words_[i]) != 0) return false;
  return true;
}

std::vector<std::int32_t> GridMask::list() const {
  std::vector<std::int32_t> cells;
  cells.reserve(static_cast<std::size_t>(count_));
  for (std::size_t i = 0; i < words_.size(); ++i)
    for (std::uint64_t left = words_[i]; left != 0; left &= left - 1)
      cells.push_back(static_cast<std::int32_t>(64 * i) + std::countr_zero(left));
  return cells;
}

}  // namespace vigil::base
