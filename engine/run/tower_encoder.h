// Frames through preprocessing and the vision tower, every patch group of every frame.
#pragma once

#include <memory>
#include <span>
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
  std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) override;

 private:
  /// The patch's frames on the stream's device, at `to` on a GPU, which moves on: 8-bit levels travel, not
  /// numbers.
  std::vector<model::PictureView> place(const PatchFrames& patch, std::byte*& to);
  /// Those that each mask has, on the stream's device until the next call; null for one that has all.
  std::vector<const std::int32_t*> send(std::span<const base::GridMask> groups);

  std::shared_ptr<const model::ModelFolder> folder_;
  kernels::Stream stream_;
  model::Preprocessor preprocessor_;
  model::VisionTower tower_;
  kernels::DType embeddings_;
  kernels::Buffer frames_, rows_;
  std::vector<std::int32_t> squares_;
  kernels::DeviceTable table_;
};

}  // namespace vigil::run
