// What a vision tower keeps of the frame that it last saw of a camera.
#pragma once

#include "engine/model/vision/patch_grid.h"
#include "kernels/device/buffer.h"

namespace vigil::model {

/// Keys and values of all patches of a frame in the blocks of full attention, each as it was when its square
/// was last computed. So a pass that computes the squares that changed alone shows them the others, which
/// they were taught to see, at no cost but this memory: of 448x448 pixels at the 7B shape 21 MB. What a
/// square that did not change would be beside those that did, it does not tell.
///
/// Owned by whoever has the camera; filled by one tower (`VisionTower::encode`), which has it to itself for
/// as long as a pass lasts.
class SeenFrame {
 public:
  /// Whether all of a frame of this size is there.
  bool holds(const PatchGrid& grid) const { return is_whole_ && grid_ == grid; }
  void forget() { is_whole_ = false; }

 private:
  friend class VisionTower;

  PatchGrid grid_;
  bool is_whole_ = false;
  /// [blocks of full attention, keys and values, patches, hidden_size] of the type of computation; patches in
  /// the order of their squares.
  kernels::Buffer keys_;
};

}  // namespace vigil::model
