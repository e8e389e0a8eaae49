// Qwen2.5-VL's vision tower: patches in, one token for each merged square of patches out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/parameters.h"
#include "kernels/device/buffer.h"

namespace vigil::model {

/// The patches of one picture or video: `t` temporal patches of `h` x `w` patches; h and w are multiples of
/// spatial_merge_size.
struct PatchGrid {
  std::int64_t t = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;

  std::int64_t patches() const { return t * h * w; }
};

/// How the tower walks over patches: in which order, in which windows, at which angles.
///
/// Patches arrive as the preprocessor lays them: squares of spatial_merge_size² patches, square after square.
/// Windowed blocks want the squares of a window together, so the whole tower runs in window order and the
/// merged tokens are put back at the end.
struct VisionPlan {
  /// Square `squares[i]` of the input is the i-th in window order.
  std::vector<std::int32_t> squares;
  /// Rows of patches that attend to each other, in window order: within windows, and over whole frames.
  /// Ascending from 0.
  std::vector<std::int32_t> window_bounds;
  std::vector<std::int32_t> frame_bounds;
  /// Rotary angles in window order, dense [patches, head_dim / 2]: half of the frequencies turn by the row,
  /// half by the column.
  std::vector<float> cos, sin;

  VisionPlan(const VisionConfig& config, std::span<const PatchGrid> grids);
};

/// The weights have to outlive it. Not thread-safe: it keeps working memory. One owner (an actor) at a time.
class VisionTower {
 public:
  /// Throws ModelError for a missing tensor, a wrong shape, or an activation that it does not have.
  VisionTower(const VisionConfig& config, Parameters& parameters);

  const VisionConfig& config() const { return config_; }
  /// Values of a patch: in_channels * temporal_patch_size * patch_size².
  std::int64_t patch_values() const { return patch_embed_.cols; }
  kernels::DType compute() const { return compute_; }

  /// Encodes pictures of any number and size in one pass; frames do not see each other.
  /// patches: the type of computation, [sum of patches(), patch_values()]; tokens: f32 [sum of patches() /
  /// spatial_merge_size², out_hidden_size], dense, in the order of the squares. Throws std::invalid_argument
  /// if the patches do not fit the grids.
  void encode(kernels::Stream& stream, kernels::ConstMatrix patches, std::span<const PatchGrid> grids,
              float* tokens);

 private:
  struct Block {
    std::vector<float> norm1, norm2;
    kernels::ConstMatrix qkv, proj, gate, up, down;
    std::vector<float> qkv_bias, proj_bias, gate_bias, up_bias, down_bias;
    bool whole_frame;
  };

  VisionConfig config_;
  kernels::DType compute_;
  kernels::ConstMatrix patch_embed_;
  std::vector<Block> blocks_;
  std::vector<float> merger_norm_, merger_bias_, out_bias_;
  kernels::ConstMatrix merger_, out_;
  /// Activations, reused from pass to pass; grows to the largest.
  kernels::Buffer embedded_, hidden_, normed_, qkv_, attended_, gate_, up_, merged_, tokens_;
};

}  // namespace vigil::model
