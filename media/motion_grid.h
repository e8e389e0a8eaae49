// Motion vectors laid over a grid of square cells: what moved where.
#pragma once

#include <cstddef>
#include <vector>

#include "media/media.h"
#include "media/motion.h"

namespace vigil::media {

/// A vector shorter than this, in pixels, is noise of the codec's search rather than motion (CodecSight's
/// threshold).
inline constexpr float kMovingPixels = 0.25F;

/// The motion of any number of frames of one size, per cell. Cells at the right and bottom edge may reach out
/// of the frame.
class MotionGrid {
 public:
  struct Cell {
    /// Length of the longest vector, in pixels.
    float longest = 0;
    /// How the content moved, summed over the vectors to past frames: right and down are positive.
    float moved_x = 0;
    float moved_y = 0;
    int vectors = 0;
  };

  /// `cell`: edge length in pixels. No codec has blocks smaller than 4, few smaller than 8.
  explicit MotionGrid(Size frame, int cell = 8);

  void add(const FrameMotion& motion);

  int columns() const { return columns_; }
  int rows() const { return rows_; }
  int cell_size() const { return cell_; }
  Size frame() const { return frame_; }
  const Cell& at(int column, int row) const {
    return cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
                  static_cast<std::size_t>(column)];
  }

  /// Share of the cells with a vector longer than `kMovingPixels`, 0 to 1.
  double moving_share() const;

 private:
  Size frame_;
  int cell_;
  int columns_;
  int rows_;
  std::vector<Cell> cells_;
};

}  // namespace vigil::media
