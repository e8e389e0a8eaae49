// From pictures to the numbers that the vision tower takes, as the processor files of a Hugging Face folder
// tell it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/model/files/config.h"
#include "engine/model/vision/picture.h"
#include "kernels/patches/patches.h"
#include "kernels/resize/resize.h"

namespace vigil::model {

/// The settings for images, or for videos. The defaults are those of transformers' Qwen2VLImageProcessor.
struct PreprocessSettings {
  bool do_resize = true;
  /// Bounds on the pixels of a resized frame.
  std::int64_t min_pixels = std::int64_t{56} * 56;
  std::int64_t max_pixels = std::int64_t{28} * 28 * 1280;
  int patch_size = 14;
  int temporal_patch_size = 2;
  int merge_size = 2;
  bool do_rescale = true;
  double rescale_factor = 1.0 / 255;
  bool do_normalize = true;
  std::array<double, 3> mean = {0.48145466, 0.4578275, 0.40821073};
  std::array<double, 3> std = {0.26862954, 0.26130258, 0.27577711};
  /// Which published implementation is followed to the last bit: Pillow and NumPy (images), or torchvision
  /// (videos).
  kernels::ResizeLike resize_like = kernels::ResizeLike::pillow;
};

struct PreprocessConfig {
  PreprocessSettings image;
  PreprocessSettings video;
};

/// Reads `processor_config.json`, `preprocessor_config.json` and `video_preprocessor_config.json` with the
/// precedence that transformers 5 gives them. Throws ModelError naming the file and the key; for a folder
/// with none of them, too.
PreprocessConfig read_preprocess_config(const std::filesystem::path& folder);

/// Values in the vision tower's order, and the patches in time, height and width.
struct PixelValues {
  /// [grid_time * grid_height * grid_width, 3 * temporal_patch_size * patch_size²]
  std::vector<float> values;
  int grid_time = 0;
  int grid_height = 0;
  int grid_width = 0;
};

/// Immutable, thread-safe.
class Preprocessor {
 public:
  /// Throws ModelError if the patches are not those of the vision tower.
  Preprocessor(const PreprocessSettings& settings, const VisionConfig& vision);

  const PreprocessSettings& settings() const { return settings_; }
  /// Frames that make one temporal patch.
  int frames_per_patch() const { return settings_.temporal_patch_size; }

  /// The size to which the published `smart_resize` brings a picture: near its own, its aspect nearly kept,
  /// both sides multiples of patch_size * merge_size, the area within the bounds. Throws
  /// std::invalid_argument for an empty picture and for one more than 200 times as long as wide.
  PictureSize frame_size(PictureSize source) const;

  /// Visual tokens of one temporal patch of frames of this (resized) size.
  std::int64_t tokens(PictureSize frame) const;
  /// Rows and columns of what `cut` writes for frames of this (resized) size.
  std::int64_t patch_rows(PictureSize frame) const;
  std::int64_t patch_values() const;

  /// One temporal patch of frames that already have their final size: 8-bit levels to normalised patches in
  /// one pass. A shorter list is completed by repeating its last frame. `out` is [patch_rows, patch_values],
  /// f32 or bf16. Throws std::invalid_argument for frames of unequal size or of one that is not a multiple of
  /// the patch group, and for more than `frames_per_patch` frames. `squares`: of these alone, ascending, as
  /// many as `out` has rows for (kernels::cut_patches); null: of all. Frames, squares and result lie on the
  /// stream's device.
  void cut(kernels::Stream& stream, std::span<const PictureView> frames, kernels::Matrix out,
           const std::int32_t* squares = nullptr) const;

  /// The whole published preprocessing of one image, or of the frames of one video (of equal size), on a CPU
  /// stream: resize, pad in time, cut.
  PixelValues process(kernels::Stream& stream, std::span<const PictureView> frames) const;

 private:
  PreprocessSettings settings_;
  kernels::LevelTable table_;
};

}  // namespace vigil::model
