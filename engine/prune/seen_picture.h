// What the model last saw of a camera, and how much of a new frame differs from it in other than light.
#pragma once

#include <cstddef>
#include <vector>

#include "base/grid_mask.h"
#include "engine/prune/light.h"
#include "engine/prune/low_res.h"
#include "engine/prune/pruning_policy.h"

namespace vigil::prune {

/// How a frame differs from what was seen.
struct SceneChange {
  /// Of each group, 0 to 255: the second largest difference of its blocks, beyond what light explains;
  /// half the largest, where that is more.
  std::vector<float> groups;
  Light light;
  /// The mean difference of luma in a group that did not change: the median of all groups.
  float noise = 0;
};

/// A mosaic: of each group the frame with which the model last got it, in the light of the last whole
/// picture. Kept as blocks of half a patch's edge, of which an object of a patch's size covers at least one
/// wherever it stands. Not thread-safe.
class SeenPicture {
 public:
  explicit SeenPicture(const PatchGrid& grid);

  /// Pixels along the edge of a block: half a patch's, or a patch's where that is odd.
  int block() const { return block_; }
  /// Whether anything of this size was seen.
  bool is_like(const LowRes& blocks) const {
    return seen_.width == blocks.width && seen_.height == blocks.height;
  }

  /// Of a frame of the same size, in blocks.
  void compare(const LowRes& now, SceneChange& to);

  /// The whole picture was shown.
  void see(const LowRes& now);
  /// These groups were shown, in this light.
  void see(const LowRes& now, const base::GridMask& groups, const Light& light);

  /// The means of its groups.
  const LowRes& groups() const { return seen_groups_; }
  /// Of each group the range of its blocks' luma: where that is small, moving the camera changes nothing.
  const std::vector<float>& texture() const { return texture_; }

 private:
  void learn_groups();

  int block_;
  /// Blocks along the edge of a group.
  std::size_t per_group_;
  LowRes seen_, seen_groups_;
  std::vector<float> texture_;
  /// Memory of `compare`.
  LowRes now_groups_, smooth_;
  std::vector<float> expected_, differences_, highest_, second_, quiet_, noise_;
};

}  // namespace vigil::prune
