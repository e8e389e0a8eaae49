// The brightness of a picture, and how much it differs from another, patch by patch.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/vision/picture.h"
#include "engine/prune/pruning_policy.h"

namespace vigil::prune {

/// Brightness of each pixel (BT.601's weights, full range), rows after each other without padding.
struct Luma {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;

  bool same_size(const Luma& other) const { return width == other.width && height == other.height; }
};

/// `to` keeps its memory.
void luma_of(const model::PictureView& picture, Luma& to);

/// Mean absolute difference of two pictures of one size, from 0 to 255: one number a patch, rows of patches
/// after each other. The edges are multiples of the patch's.
void difference(const Luma& a, const Luma& b, int patch, std::vector<float>& to);

/// The groups of which a patch is above the threshold.
base::GridMask groups_above(const std::vector<float>& patches, const PatchGrid& grid, int width, int height,
                            float threshold);

/// Throws as `PruningPolicy::choose` does for pictures.
void check_pictures(std::span<const SampledPicture> frames, const PatchGrid& grid);

}  // namespace vigil::prune
