// What differs from what the model last saw there.
#pragma once

#include <vector>

#include "engine/prune/anchor_clock.h"
#include "engine/prune/luma.h"
#include "engine/prune/pruning_policy.h"

namespace vigil::prune {

/// A group is encoded when the luma of one of its patches differs from that of the last frame in which the
/// model got this group, by more than a fixed threshold and by more than its camera's noise explains. Anchors
/// show the whole picture. Looks at no motion.
class Reference final : public PruningPolicy {
 public:
  /// Options as `make_pruning` takes them.
  explicit Reference(const PruningOptions& options);

  bool wants_motion() const override { return false; }
  Choice choose(double seconds, std::span<const SampledPicture> frames) override;
  void lost(const base::GridMask& groups) override;

  /// The mean absolute difference that noise alone makes between two frames: that of the quietest quarter of
  /// patches, smoothed over some twenty frames.
  float noise() const { return noise_; }

 private:
  /// What the noise makes of the next frame, before it becomes the last one.
  void hear(const Luma& frame);
  float threshold() const;

  PruningOptions options_;
  AnchorClock anchors_;
  /// Of each group, the pixels of the frame in which it was last chosen.
  Luma seen_;
  Luma last_, now_;
  std::vector<float> differences_, sorted_;
  float noise_ = 0;
  base::GridMask missed_;
};

}  // namespace vigil::prune
