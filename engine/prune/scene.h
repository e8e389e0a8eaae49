// What of the scene changed since the model last saw it, and not just the light on it.
#pragma once

#include <vector>

#include "engine/prune/allowance.h"
#include "engine/prune/anchor_clock.h"
#include "engine/prune/low_res.h"
#include "engine/prune/pruning_policy.h"
#include "engine/prune/seen_picture.h"
#include "engine/prune/stream_groups.h"

namespace vigil::prune {

/// A group is encoded when it differs from what the model last saw there, beyond what light and the camera's
/// noise explain. Where most of a window of the vision tower's attention is encoded, all of it is. The whole
/// picture comes with anchors, and at once when the light has moved far, when more than half of the groups
/// changed, and when what has texture changed nearly everywhere (the camera moved).
///
/// A group's token tells of the groups around it, too, so these are encoded anew with it
/// (`Around::shown`), and the stream keeps more than what changed (stream_groups.h).
///
/// What goes on like that does not flood the encoder: such anchors, and many changed groups over many
/// patches (not what is around these), have an allowance each. When it is used up, the groups that differ
/// most come first; the others still differ, and come as soon as there is room. Looks at no motion.
class Scene final : public PruningPolicy {
 public:
  /// Of what changed.
  enum class Around : std::uint8_t { shown, left_out };

  /// Options as `make_pruning` takes them; thresholds are its own.
  Scene(const PruningOptions& options, Around around);

  bool wants_motion() const override { return false; }
  Choice choose(double seconds, std::span<const SampledPicture> frames) override;
  void lost(const base::GridMask& groups) override;
  void bound(double share) override { bound_ = share; }

  /// The mean difference that noise alone makes of a block, in levels of luma: that of most groups, smoothed.
  float noise() const { return noise_; }

 private:
  /// Compares the patch; `strongest_`, `lasting_` and `now_` are of it then.
  void look(std::span<const SampledPicture> frames);
  void learn_noise(float noise);
  base::GridMask changed() const;
  bool light_moved() const;
  bool camera_moved(const base::GridMask& changed) const;
  /// At most so many of these groups: those that differ most for the whole patch.
  base::GridMask strongest(const base::GridMask& of, std::int64_t most) const;
  base::GridMask with_whole_windows(const base::GridMask& groups) const;
  /// What is chosen for what changed.
  base::GridMask answer(const base::GridMask& changed);
  /// What is encoded with it, and kept.
  Choice with_stream(const base::GridMask& changed);

  PruningOptions options_;
  Around around_;
  AnchorClock anchors_;
  SeenPicture seen_;
  LowRes now_;
  /// Of the last frame.
  SceneChange change_;
  /// Of each group the larger and the smaller change of the patch's frames.
  std::vector<float> strongest_, lasting_;
  float noise_ = 0;
  int heard_ = 0;
  double last_seconds_ = 0;
  /// Whole pictures beside the clock's.
  Allowance extra_anchors_;
  /// Groups of patches that are not whole, in pictures.
  Allowance groups_;
  base::GridMask missed_;
  StreamGroups stream_;
  double bound_ = 1;
};

}  // namespace vigil::prune
