// The vision tower on several devices: each encodes some of the frames.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/run/rank_team.h"
#include "engine/run/tower_encoder.h"
#include "engine/run/vision_encoder.h"

namespace vigil::run {

/// Frames do not see each other in the vision tower, so devices that have the whole of it need not speak with
/// each other, which they would twice a block if they shared it. What they have encoded comes to the first.
class ParallelEncoder final : public VisionEncoder {
 public:
  /// Loads a tower on each stream's device. Throws as TowerEncoder does.
  ParallelEncoder(const std::shared_ptr<const model::ModelFolder>& folder, kernels::DType compute,
                  const std::vector<kernels::Stream>& streams,
                  model::Quantization quantization = model::Quantization::none,
                  kernels::DType embeddings = kernels::DType::f32);

  int frames_per_patch() const override { return towers_.front()->frames_per_patch(); }
  model::PictureSize frame_size(model::PictureSize source) const override {
    return towers_.front()->frame_size(source);
  }
  std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) override;
  void forget(const std::string& camera) override;

 private:
  /// Which patches each tower takes, about as much each; those of a camera that is remembered, where it is.
  std::vector<std::vector<std::size_t>> shares(std::span<const PatchFrames> patches);
  /// Of a camera that is new, that which has fewest.
  std::size_t tower_of(const std::string& camera);
  /// The same on the first device.
  model::VisualTokensPtr bring(const model::VisualTokens& tokens, const kernels::Stream& from) const;

  std::vector<kernels::Stream> streams_;
  std::vector<std::unique_ptr<TowerEncoder>> towers_;
  RankTeam team_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> tower_of_;
};

}  // namespace vigil::run
