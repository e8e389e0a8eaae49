#include "media/motion_grid.h"

#include <algorithm>
#include <cmath>

namespace vigil::media {

MotionGrid::MotionGrid(Size frame, int cell)
    : frame_(frame),
      cell_(cell),
      columns_((frame.width + cell - 1) / cell),
      rows_((frame.height + cell - 1) / cell) {
  cells_.resize(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_));
}

void MotionGrid::add(const FrameMotion& motion) {
  for (const MotionVector& v : motion.vectors) {
    const float dx = v.dx_pixels();
    const float dy = v.dy_pixels();
    const float length = std::hypot(dx, dy);
    const int left = std::max(0, int{v.x}) / cell_;
    const int top = std::max(0, int{v.y}) / cell_;
    const int right = std::min(columns_, (v.x + v.width + cell_ - 1) / cell_);
    const int bottom = std::min(rows_, (v.y + v.height + cell_ - 1) / cell_);
    for (int row = top; row < bottom; ++row) {
      for (int column = left; column < right; ++column) {
        Cell& cell = cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
                            static_cast<std::size_t>(column)];
        cell.longest = std::max(cell.longest, length);
        if (v.reference >= 0) continue;
        cell.moved_x -= dx;
        cell.moved_y -= dy;
        ++cell.vectors;
      }
    }
  }
}

double MotionGrid::moving_share() const {
  if (cells_.empty()) return 0;
  const auto moving =
      std::count_if(cells_.begin(), cells_.end(), [](const Cell& c) { return c.longest > kMovingPixels; });
  return static_cast<double>(moving) / static_cast<double>(cells_.size());
}

}  // namespace vigil::media
