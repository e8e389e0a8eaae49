// Frames as media samples them, in the form in which engine/prune takes them.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "engine/prune/pruning_policy.h"
#include "media/media.h"

namespace vigil::actors {

/// What a policy gets of one temporal patch. Refers to the frames that it was made of, which have to outlive
/// it. Not thread-safe.
class PruningInput {
 public:
  /// What of the frames' motion is laid over the pictures' patches is what this policy wants.
  PruningInput(std::span<const media::SampledFrame> frames, const prune::PatchGrid& grid,
               const prune::PruningPolicy& policy);
  PruningInput(const PruningInput&) = delete;
  PruningInput& operator=(const PruningInput&) = delete;

  std::span<const prune::SampledPicture> pictures() const { return pictures_; }

 private:
  /// Deques, since spans point into them.
  std::deque<std::vector<float>> motion_, residual_;
  std::deque<std::vector<prune::CodecFrame>> frames_;
  std::vector<prune::SampledPicture> pictures_;
};

}  // namespace vigil::actors
