// M-RoPE: three positions a token (Qwen2-VL, section 2.1), and the angles that follow from them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/config.h"
#include "kernels/rope/rope.h"

namespace vigil::model {

/// A token's positions on the temporal, height and width axes. Text has the same on all three.
struct Position {
  std::int32_t t = 0;
  std::int32_t h = 0;
  std::int32_t w = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// Positions of a prompt, part after part, as `get_rope_index` of transformers 5 assigns them:
/// text counts up on all axes; a grid of visual tokens starts where the text stopped, its temporal axis in
/// steps of `time_interval`, and the text after it goes on max(grid height, grid width) later, wherever the
/// temporal axis ended.
class PositionBuilder {
 public:
  void text(std::int64_t tokens);

  /// Visual tokens of `frames` temporal patches of `height` x `width` tokens each. Throws
  /// std::invalid_argument if the last one's position does not fit its type.
  void grid(std::int64_t frames, std::int64_t height, std::int64_t width, std::int32_t time_interval);

  /// One generated token: past the largest position so far, on all axes.
  void generated();

  const std::vector<Position>& positions() const { return positions_; }

  /// The position of the first token generated after the prompt: one past the largest on any axis.
  std::int32_t next() const { return largest_ + 1; }

 private:
  std::vector<Position> positions_;
  std::int32_t current_ = 0;
  std::int32_t largest_ = -1;
};

/// Temporal positions between two temporal patches: tokens_per_second times the whole seconds that a patch
/// covers. Throws std::invalid_argument if that is no position.
std::int32_t time_interval(const VisionConfig& vision, double seconds_per_grid);

/// How the decoder's rotary pairs turn: pair j by position[axis(j)] * theta^(-2 j / head_dim), the axes
/// taking the pairs in runs of `mrope_section`. One entry a pair.
std::vector<kernels::RopeFrequency> multimodal_rope(const TextConfig& config);

}  // namespace vigil::model
