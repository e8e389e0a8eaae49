// CodecSight's token pruning (section 3.3, equations 1 to 4), to the letter.
#pragma once

#include "engine/prune/pruning_policy.h"

namespace vigil::prune {

/// A patch of the picture is dynamic where M = V + αR exceeds τ (equations 3 and 4). Within a group of
/// pictures the dynamic ones add up, over all decoded frames, sampled or not; an I-frame begins anew, and the
/// first sample at or after it, which stands for it, is kept whole. Kept is a group of which a patch is
/// dynamic (the group-complete mask).
class CodecSight final : public PruningPolicy {
 public:
  /// Options as `make_pruning` takes them.
  explicit CodecSight(const PruningOptions& options) : options_(options) {}

  bool wants_motion() const override { return true; }
  bool wants_residual() const override { return options_.residual_weight > 0; }
  Choice choose(double seconds, std::span<const SampledPicture> frames) override;
  void lost(const base::GridMask& groups) override;

 private:
  void add(const CodecFrame& frame, std::int64_t rows, std::int64_t columns);

  PruningOptions options_;
  /// Groups that moved since the last I-frame; all, where that is not known.
  base::GridMask active_;
  /// To be shown with the next patch.
  base::GridMask missed_;
};

}  // namespace vigil::prune
