// TimeChat-Online's differential token drop, as a control.
#pragma once

#include <vector>

#include "engine/prune/anchor_clock.h"
#include "engine/prune/luma.h"
#include "engine/prune/pruning_policy.h"

namespace vigil::prune {

/// A group is encoded when it differs from the same place of the patch *before* (arXiv 2504.17343, in
/// pixels): of two frames the first is compared with the last one of the patch before, the second with the
/// first. What changes slowly is never seen to change; anchors, which the paper has none of but its first
/// frame, bound that as they do for `reference`, so that the two differ in what they compare with alone.
class DifferentialDrop final : public PruningPolicy {
 public:
  /// Options as `make_pruning` takes them.
  explicit DifferentialDrop(const PruningOptions& options);

  bool wants_motion() const override { return false; }
  Choice choose(double seconds, std::span<const SampledPicture> frames) override;
  void lost(const base::GridMask& groups) override;

 private:
  PruningOptions options_;
  AnchorClock anchors_;
  Luma last_, now_;
  std::vector<float> differences_;
  base::GridMask missed_;
};

}  // namespace vigil::prune
