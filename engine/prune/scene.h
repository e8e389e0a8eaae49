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
/// A token covers all frames of its patch. Where these differ, it tells of a movement that is over when the
/// next patch comes, and nothing that is kept may say so for ever: such a group is encoded again then, and
/// with it what is around it, since tokens tell of their neighbours, too.
///
/// Whole pictures beside the clock's have an allowance; without it, what changed comes. An encoder that is
/// behind (`spare`), and a camera with a bound, are not flooded by what goes on: many changed groups over
/// many patches, and what is around groups, have an allowance each, too. When it is used up, the groups that
/// differ most come first; the others still differ, and come as soon as there is room. Otherwise all of it
/// comes, and the whole picture where more than three quarters of it would. Looks at no motion.
class Scene final : public PruningPolicy {
 public:
  /// What the stream keeps: of more groups than are encoded the last token (stream_groups.h), or of what
  /// changed alone. Around the latter nothing is encoded, and it is always sparing.
  enum class Stream : std::uint8_t { lately, changes };

  /// Options as `make_pruning` takes them; thresholds are its own.
  Scene(const PruningOptions& options, Stream stream);

  bool wants_motion() const override { return false; }
  Choice choose(double seconds, std::span<const SampledPicture> frames) override;
  void lost(const base::GridMask& groups) override;
  void bound(double share) override { bound_ = share; }
  void spare(bool is_behind) override { is_behind_ = is_behind; }

  /// The mean difference that noise alone makes of a block, in levels of luma: that of most groups, smoothed.
  float noise() const { return noise_; }

 private:
  /// Whether allowances count.
  bool spares() const { return is_behind_ || bound_ < 1 || keeps_ == Stream::changes; }
  /// The patch as blocks: `frames_` is of it then.
  void take(std::span<const SampledPicture> frames);
  /// Compares it with what was seen: `strongest_`, `lasting_` and `change_` are of it then.
  void look();
  /// Compares its frames with each other: `stirred_` is of it then. Of a stream that `begins` nothing else
  /// tells the noise.
  void compare_frames(bool begins);
  void learn_noise(float noise);
  base::GridMask above_noise(const std::vector<float>& differences) const;
  bool light_moved() const;
  bool camera_moved(const base::GridMask& changed) const;
  /// At most so many of these groups: those that differ most for the whole patch.
  base::GridMask strongest(const base::GridMask& of, std::int64_t most) const;
  base::GridMask with_whole_windows(const base::GridMask& groups) const;
  /// What is chosen for what changed.
  base::GridMask answer(const base::GridMask& changed);
  /// What is encoded and kept when these groups changed. The model has seen it then.
  Choice show(const base::GridMask& changed);
  /// With what moved in earlier patches.
  Choice with_settled(const base::GridMask& changed);

  PruningOptions options_;
  Stream keeps_;
  AnchorClock anchors_;
  SeenPicture seen_, before_;
  std::vector<LowRes> frames_;
  /// Of the last frame, to what was seen, and to the frame before.
  SceneChange change_, step_;
  /// Of each group the larger and the smaller change of the patch's frames.
  std::vector<float> strongest_, lasting_;
  /// Groups in which the frames of the patch differ; and those whose last token tells of such.
  base::GridMask stirred_, unsettled_;
  float noise_ = 0;
  int heard_ = 0;
  double last_seconds_ = 0;
  /// Whole pictures beside the clock's.
  Allowance extra_anchors_;
  /// Groups of patches that are not whole, and what is around those, in pictures.
  Allowance groups_, around_;
  /// Groups beside those that changed for which a patch that is not whole has room.
  std::int64_t room_ = 0;
  base::GridMask missed_;
  StreamGroups stream_;
  double bound_ = 1;
  bool is_behind_ = false;
};

}  // namespace vigil::prune
