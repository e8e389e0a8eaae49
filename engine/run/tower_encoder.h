// Frames through preprocessing and the vision tower: all of their groups, or those that were chosen.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model_folder.h"
#include "engine/model/vision/preprocess.h"
#include "engine/model/vision/vision_tower.h"
#include "engine/run/vision_encoder.h"
#include "kernels/device/device_table.h"

namespace vigil::run {

class TowerEncoder final : public VisionEncoder {
 public:
  /// Works on `stream`; `embeddings`: of the visual tokens, f32 or bf16. Throws ModelError for a folder
  /// without a usable vision tower or preprocessing.
  TowerEncoder(std::shared_ptr<const model::ModelFolder> folder, kernels::DType compute,
               kernels::Stream stream, model::Quantization quantization = model::Quantization::none,
               kernels::DType embeddings = kernels::DType::f32);

  int frames_per_patch() const override;
  model::PictureSize frame_size(model::PictureSize source) const override;
  /// Patches of one camera that is remembered are encoded one after the other. Where it is not remembered any
  /// more, so that all of a patch is encoded, passes are as small as what was asked for.
  std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) override;
  void forget(const std::string& camera) override;

  /// Groups of the largest pass until now. By the caller of `encode`.
  std::int64_t largest_pass() const { return largest_pass_; }

 private:
  /// What is remembered of a camera: 23 MB of one of 448x448 pixels at the 7B shape.
  struct Camera {
    model::SeenFrame frame;
    /// The last token of each group: [groups, width] of the embeddings' type.
    kernels::Buffer tokens;
    /// Counted over all cameras: when it was wanted last.
    std::uint64_t used = 0;
  };
  /// A patch of a pass.
  struct Part {
    model::PatchGrid grid;
    /// What is computed, and what there are tokens of.
    base::GridMask encoded;
    std::optional<base::GridMask> kept;
    /// Null: nobody's.
    std::shared_ptr<Camera> camera;
  };
  /// Those that are asked for.
  base::GridMask groups_of(const PatchFrames& patch) const;
  /// Whether groups would have to be encoded that have no pixels.
  bool lacks_pixels(const PatchFrames& patch);
  Part part_of(const PatchFrames& patch);
  /// Null if there is no room for it.
  std::shared_ptr<Camera> remember(const std::string& camera, const model::PatchGrid& grid);
  /// Gives up the half of what is remembered that was wanted longest ago.
  void forget_half();
  /// In one pass, at most one patch of a camera that is remembered.
  std::vector<model::VisualTokensPtr> encode_pass(std::span<const PatchFrames> patches,
                                                  const std::vector<Part>& parts);

  /// The patch's frames on the stream's device, at `to` on a GPU, which moves on: 8-bit levels travel, not
  /// numbers.
  std::vector<model::PictureView> place(const PatchFrames& patch, std::byte*& to);
  /// On the stream's device until the next call: places of groups in their frames.
  struct Lists {
    const std::int32_t* encoded = nullptr;
    const std::int32_t* kept = nullptr;
  };
  std::vector<Lists> send(std::span<const Part> parts);
  /// The tokens of a part, of which the tower made these.
  kernels::Buffer tokens_of(const Part& part, const kernels::Matrix& made, const Lists& lists);

  std::shared_ptr<const model::ModelFolder> folder_;
  kernels::Stream stream_;
  model::Preprocessor preprocessor_;
  model::VisionTower tower_;
  kernels::DType embeddings_;
  kernels::Buffer frames_, rows_;
  std::vector<std::int32_t> lists_;
  kernels::DeviceTable table_;
  kernels::Buffer rounded_, all_tokens_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Camera>> cameras_;
  std::uint64_t uses_ = 0;
  std::int64_t largest_pass_ = 0;
};

}  // namespace vigil::run
