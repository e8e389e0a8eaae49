// M-RoPE: three positions a token (Qwen2-VL, section 2.1), and the angles that follow from them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/grid_mask.h"
#include "engine/model/files/config.h"
#include "kernels/rope/rope.h"

namespace vigil::model {

/// A token's positions on the temporal, height and width axes. Text has the same on all three.
struct Position {
  std::int32_t t = 0;
  std::int32_t h = 0;
  std::int32_t w = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// Where a prompt goes on, part after part, as `get_rope_index` of transformers 5 assigns positions:
/// text counts up on all axes; a grid of visual tokens starts where the text stopped, its temporal axis in
/// steps of `time_interval`, and the text after it goes on max(grid height, grid width) later, wherever the
/// temporal axis ended. All of it may lie at an origin, an axis at a time: rotations depend on differences
/// only, so a prompt can be placed where a camera's stream is. Each function appends to `to`, and throws
/// std::invalid_argument for a position that does not fit its type.
class PositionCursor {
 public:
  PositionCursor() = default;
  explicit PositionCursor(const Position& origin) : origin_(origin) {}

  void text(std::int64_t tokens, std::vector<Position>& to);
  /// Visual tokens of `frames` temporal patches of `height` x `width` tokens each.
  void grid(std::int64_t frames, std::int64_t height, std::int64_t width, std::int32_t time_interval,
            std::vector<Position>& to);
  /// A temporal patch of which some tokens are there, at a time that is counted in positions from where the
  /// grid begins. Borrowed.
  struct Patch {
    const base::GridMask* groups = nullptr;
    std::int64_t time = 0;
  };
  /// The same of such patches, at least one, all of one size and their times ascending from 0: each token has
  /// the position that it has among all, and so has what follows. Time moves them on these axes; text after
  /// them begins where the grid of the last one ends in height and width.
  void grid(std::span<const Patch> patches, std::vector<Position>& to,
            const TimeAxes& time_axes = kTimeAlone);
  /// One generated token: past the largest position so far, on all axes.
  void generated(std::vector<Position>& to);

  /// The position of the first token generated after the prompt, from the origin: one past the largest on any
  /// axis.
  std::int32_t next() const { return largest_ + 1; }

 private:
  Position placed(std::int32_t t, std::int32_t h, std::int32_t w) const {
    return {origin_.t + t, origin_.h + h, origin_.w + w};
  }
  void require(std::int64_t last, std::int64_t origin) const;
  /// `span`: from the time of the first patch to the last one's.
  void require_grid(std::int64_t frames, std::int64_t height, std::int64_t width, std::int64_t span,
                    const TimeAxes& time_axes) const;
  void leave_grid(std::int64_t frames, std::int64_t height, std::int64_t width, std::int64_t span,
                  const TimeAxes& time_axes);

  Position origin_;
  std::int32_t current_ = 0;
  std::int32_t largest_ = -1;
};

/// The positions of a whole prompt.
class PositionBuilder {
 public:
  void text(std::int64_t tokens) { cursor_.text(tokens, positions_); }
  void grid(std::int64_t frames, std::int64_t height, std::int64_t width, std::int32_t time_interval) {
    cursor_.grid(frames, height, width, time_interval, positions_);
  }

  const std::vector<Position>& positions() const { return positions_; }
  std::int32_t next() const { return cursor_.next(); }

 private:
  std::vector<Position> positions_;
  PositionCursor cursor_;
};

/// Temporal positions between two temporal patches: tokens_per_second times the whole seconds that a patch
/// covers. Throws std::invalid_argument if that is no position.
std::int32_t time_interval(const VisionConfig& vision, double seconds_per_grid);

/// A time in positions, on the axes that go on with it.
inline Position at_time(std::int32_t time, const TimeAxes& time_axes) {
  return {time_axes[0] ? time : 0, time_axes[1] ? time : 0, time_axes[2] ? time : 0};
}

/// How the decoder's rotary pairs turn: pair j by position[axis(j)] * theta^(-2 j / head_dim), the axes
/// taking the pairs in runs of `mrope_section`. One entry a pair.
std::vector<kernels::RopeFrequency> multimodal_rope(const TextConfig& config);

}  // namespace vigil::model
