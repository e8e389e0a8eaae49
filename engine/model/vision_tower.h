// Qwen2.5-VL's vision tower: patches in, one token for each merged square of patches out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/parameters.h"
#include "engine/model/projections.h"
#include "kernels/attention/attention.h"
#include "kernels/device/buffer.h"

namespace vigil::model {

/// The patches of one picture or video: `t` temporal patches of `h` x `w` patches; h and w are multiples of
/// spatial_merge_size.
struct PatchGrid {
  std::int64_t t = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;

  std::int64_t patches() const { return t * h * w; }
  friend bool operator==(const PatchGrid&, const PatchGrid&) = default;
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

/// The weights behind the parameters have to outlive it. Not thread-safe: it keeps working memory. One owner
/// (an actor) at a time.
class VisionTower {
 public:
  /// Throws ModelError for a missing tensor, a wrong shape, an activation that it does not have, and what the
  /// device cannot compute (limits.h).
  VisionTower(const VisionConfig& config, Parameters parameters);

  const VisionConfig& config() const { return config_; }
  /// Values of a patch: in_channels * temporal_patch_size * patch_size².
  std::int64_t patch_values() const { return patch_embed_.cols; }
  kernels::DType compute() const { return parameters_.compute(); }

  /// Encodes pictures of any number and size in one pass; frames do not see each other.
  /// patches: the type of computation, [sum of patches(), patch_values()]. Returns f32 [sum of patches() /
  /// spatial_merge_size², out_hidden_size], dense, in the order of the squares, in working memory until the
  /// next call; both on the stream's device. Throws std::invalid_argument if the patches do not fit the
  /// grids.
  kernels::Matrix encode(kernels::Stream& stream, kernels::ConstMatrix patches,
                         std::span<const PatchGrid> grids);

 private:
  struct Block {
    const float* norm1;
    const float* norm2;
    kernels::ConstMatrix qkv, proj, down;
    /// Gate and value.
    Projections mlp;
    kernels::Bias qkv_bias, proj_bias, down_bias;
    bool whole_frame;
  };

  /// A VisionPlan on the stream's device; cameras have one size for days.
  struct Way {
    std::vector<PatchGrid> grids;
    std::int64_t rows = 0;
    /// Where the i-th square in window order comes from, and where the i-th of the input went.
    kernels::DeviceArray<std::int32_t> squares, places;
    kernels::DeviceArray<float> cos, sin;
    kernels::SegmentPlan windows, frames;
  };
  const Way& way_of(const kernels::Stream& stream, std::span<const PatchGrid> grids);

  VisionConfig config_;
  Parameters parameters_;
  kernels::ConstMatrix patch_embed_;
  std::vector<Block> blocks_;
  const float* merger_norm_ = nullptr;
  const float* merger_bias_ = nullptr;
  const float* out_bias_ = nullptr;
  kernels::ConstMatrix merger_, out_;
  /// Values between the two products of a block: intermediate_size, and zeros up to what products like.
  std::int64_t inner_ = 0;
  Way way_;
  /// Activations, reused from pass to pass; grows to the largest.
  kernels::Buffer embedded_, hidden_, normed_, qkv_, attended_, gate_up_, rounded_, rounded_inner_, merged_,
      made_, tokens_;
};

}  // namespace vigil::model
