// One picture of a whole video: frames in a grid, and over them how they moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/grid_mask.h"
#include "media/media.h"
#include "media/motion_grid.h"

namespace vigil::media {

/// Collects samples and draws them. Over each picture lies its own motion field, that is, of all frames since
/// the sample before, be it shown or not: blocks coloured by the longest vector (blue: a quarter pixel,
/// green, yellow, red: 16 and more), and lines from where content came from to a dot where it is (the mean of
/// the vectors, twice as long). In the corner: time and type.
class ContactSheet {
 public:
  /// Holds at most `capacity` tiles: when more come, every other one is dropped with its motion, and so is
  /// every other sample that comes after.
  explicit ContactSheet(std::size_t capacity = 24, int columns = 4, int tile_width = 384);

  /// The size that samples have to have.
  Size tile_size(Size source) const;

  void add(const SampledFrame& sample);
  /// With squares of the picture instead of its motion: those that `clear` has stay as they are, those that
  /// `dim` alone has are dimmed, and all others dark. Both are of one grid.
  void add(const SampledFrame& sample, const base::GridMask& clear, const base::GridMask& dim);

  std::size_t tiles() const { return tiles_.size(); }

  /// Empty size if nothing was added.
  Image draw() const;

 private:
  struct Tile {
    SampledFrame sample;
    MotionGrid motion;
    struct Squares {
      base::GridMask clear, dim;
    };
    std::optional<Squares> squares;
  };
  /// Whether this sample is one that is kept so far.
  bool is_wanted() { return seen_++ % stride_ == 0; }
  void add(Tile tile);

  std::size_t capacity_;
  int columns_;
  int tile_width_;
  std::vector<Tile> tiles_;
  /// Of all samples, every so many-th is kept.
  std::uint64_t stride_ = 1;
  std::uint64_t seen_ = 0;
};

}  // namespace vigil::media
