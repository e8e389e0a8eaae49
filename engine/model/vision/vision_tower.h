// A vision tower by the traits of its family: patches in, one token for each merged square of patches out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/grid_mask.h"
#include "engine/model/files/config.h"
#include "engine/model/layers/parameters.h"
#include "engine/model/layers/projections.h"
#include "engine/model/vision/patch_grid.h"
#include "engine/model/vision/seen_frame.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/picture_attention.h"
#include "kernels/device/buffer.h"
#include "kernels/device/device_table.h"
#include "kernels/rope/rope.h"

namespace vigil::model {

/// How the tower walks over patches: in which order, in which windows, at which places.
///
/// Patches arrive as the preprocessor lays them: squares of spatial_merge_size² patches, square after square,
/// of those that are encoded. Windowed blocks want the squares of a window together, so the whole tower runs
/// in window order and the merged tokens are put back at the end. A square that is not encoded is nobody's
/// key and has no token; the others stand in the rows, columns and windows where they would with it.
struct VisionPlan {
  /// Square `squares[i]` of the input is the i-th in window order, and the i-th of the input is the
  /// `places[i]`-th there.
  std::vector<std::int32_t> squares, places;
  /// Of the i-th square in window order its place among all of its frame, along the rows.
  std::vector<std::int32_t> cells;
  /// Rows of patches that attend to each other, in window order: within windows, and over whole frames.
  /// Ascending from 0; a window or frame of which nothing is encoded has no bound.
  std::vector<std::int32_t> window_bounds, frame_bounds;
  /// Of each patch in window order: its row and its column in its frame, which its angles are made of.
  std::vector<std::array<std::int32_t, 2>> positions;
  /// All rows and columns lie below it.
  std::int64_t side = 0;

  std::int64_t patches() const { return static_cast<std::int64_t>(positions.size()); }
};

/// Makes plans. What a temporal patch of one size needs is worked out once and kept: cameras have a few
/// sizes, and come in ever other orders and numbers. Not thread-safe.
class VisionPlanner {
 public:
  explicit VisionPlanner(const VisionConfig& config);

  /// The plan of a pass over these grids, in working memory until the next call. `encoded`: which merged
  /// squares of each grid, the same of all its temporal patches; nothing: all of all grids. Throws
  /// std::invalid_argument for grids that are no whole number of merged squares, and for masks that are not
  /// theirs.
  const VisionPlan& plan(std::span<const PatchGrid> grids, std::span<const base::GridMask> encoded = {});

 private:
  void add_whole(const VisionPlan& frame);
  void add_some(const VisionPlan& frame, const base::GridMask& encoded);
  /// Of one temporal patch, as if it were alone; bounds without the 0 that they begin with.
  const VisionPlan& frame_of(std::int64_t height, std::int64_t width);

  /// Patches on a side of a merged square, and squares on a side of a window.
  std::int64_t merge_, window_;
  std::map<std::pair<std::int64_t, std::int64_t>, VisionPlan> frames_;
  VisionPlan plan_;
  /// Working memory: how manieth of those that are encoded each square of a frame is, -1 if it is none.
  std::vector<std::int32_t> ranks_;
};

/// The tower's rotary tables, made on the stream's device: half of the frequencies turn by a patch's row,
/// half by its column. Not thread-safe.
///
/// Sines and cosines are computed of the places on one axis alone, once, and a patch takes the lines of its
/// row and of its column. So for a pass of eight temporal patches of 448x448 the host copies positions, 8,192
/// rows and columns in 64 KB, and computes no angle.
class VisionAngles {
 public:
  explicit VisionAngles(const VisionConfig& config);

  /// Makes the tables of patches in these rows and columns, all below `side`: int32 [patches, 2] on the
  /// stream's device.
  void make(kernels::Stream& stream, const std::int32_t* positions, std::int64_t patches, std::int64_t side);

  /// f32 [patches, head_dim / 2], dense, on the device until the next call of `make`.
  const float* cos() const { return cos_.as<float>(); }
  const float* sin() const { return sin_.as<float>(); }

 private:
  /// Of either axis.
  std::vector<kernels::RopeFrequency> frequencies_;
  /// cos and sin of the places [0, side_) on an axis.
  std::int64_t side_ = 0;
  kernels::Buffer axis_cos_, axis_sin_;
  kernels::Buffer cos_, sin_;
};

/// The weights behind the parameters have to outlive it. Not thread-safe: it keeps working memory. One owner
/// (an actor) at a time.
class VisionTower {
 public:
  /// Throws ModelError for a missing tensor, a wrong shape, and what the device cannot compute (limits.h).
  VisionTower(const VisionConfig& config, Parameters parameters);

  const VisionConfig& config() const { return config_; }
  /// Values of a patch: in_channels * temporal_patch_size * patch_size².
  std::int64_t patch_values() const { return patch_embed_.cols; }
  kernels::DType compute() const { return parameters_.compute(); }

  /// Encodes pictures of any number and size in one pass; frames do not see each other.
  /// patches: the type of computation, [sum of patches(), patch_values()], of those squares alone that are
  /// `encoded` (as VisionPlanner::plan has it). Returns f32 [patches / spatial_merge_size², out_hidden_size],
  /// dense, in the order of the squares, in working memory until the next call; both on the stream's device.
  /// Throws std::invalid_argument if the patches do not fit the grids.
  ///
  /// `seen`: of each grid, null or what this tower keeps of its frames, which are of one temporal patch then.
  /// What is not `encoded` of them is a key of the blocks of full attention all the same, as it was when it
  /// was last computed. Throws std::invalid_argument for one that holds no frame of this size and is to bring
  /// a part of it, and for one that is named twice. After an error they hold nothing.
  kernels::Matrix encode(kernels::Stream& stream, kernels::ConstMatrix patches,
                         std::span<const PatchGrid> grids, std::span<const base::GridMask> encoded = {},
                         std::span<SeenFrame* const> seen = {});

  /// Makes room for what is kept of frames of this size, which `encode` does otherwise: what it holds of
  /// another size is lost. Throws std::bad_alloc; it has no room then.
  void reserve(const kernels::Stream& stream, SeenFrame& frame, const PatchGrid& grid) const;
  /// Bytes of that room.
  std::size_t seen_bytes(const PatchGrid& grid) const;

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

  /// A VisionPlan on the stream's device, for as long as passes have the same grids and keep the same.
  struct Way {
    std::vector<PatchGrid> grids;
    std::vector<base::GridMask> encoded;
    std::int64_t rows = 0;
    /// Of each grid its rows, and of each square in window order its place in its frame.
    std::vector<std::int32_t> bounds, cells;
    /// Squares, places and positions.
    kernels::DeviceTable table;
    kernels::SegmentPlan windows, frames;

    const std::int32_t* squares() const { return table.at<std::int32_t>(0); }
    const std::int32_t* places() const { return table.at<std::int32_t>(1); }
    const std::int32_t* positions() const { return table.at<std::int32_t>(2); }
  };
  const Way& way_of(kernels::Stream& stream, std::span<const PatchGrid> grids,
                    std::span<const base::GridMask> encoded);
  /// Checks what was seen, and makes room for what will be; whether there is any.
  bool begin_seen(kernels::Stream& stream, std::span<const PatchGrid> grids,
                  std::span<const base::GridMask> encoded, std::span<SeenFrame* const> seen);
  /// Where the keys of this pass's frames lie, in the blocks of full attention.
  kernels::PicturePlan pictures_of(kernels::Stream& stream, const Way& way, std::span<SeenFrame* const> seen);

  VisionConfig config_;
  Parameters parameters_;
  kernels::ConstMatrix patch_embed_;
  std::vector<Block> blocks_;
  const float* merger_norm_ = nullptr;
  const float* merger_bias_ = nullptr;
  const float* out_bias_ = nullptr;
  kernels::ConstMatrix merger_, out_;
  /// Blocks of full attention.
  std::int64_t whole_blocks_ = 0;
  /// Values between the two products of a block: intermediate_size, and zeros up to what products like.
  std::int64_t inner_ = 0;
  VisionPlanner planner_;
  VisionAngles angles_;
  Way way_;
  /// Activations, reused from pass to pass; grows to the largest.
  kernels::Buffer embedded_, hidden_, normed_, qkv_, attended_, gate_up_, rounded_, rounded_inner_, merged_,
      made_, tokens_, unseen_;
};

}  // namespace vigil::model
