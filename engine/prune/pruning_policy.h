// Which groups of a temporal patch are worth encoding, decided before the vision tower.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/grid_mask.h"
#include "engine/model/vision/picture.h"

namespace vigil::prune {

/// The squares of a picture as the model cuts it: patches, of which `merge` x `merge` make the group that
/// becomes one visual token.
struct PatchGrid {
  /// Edge of a patch, in pixels of the picture.
  int patch = 14;
  /// Patches along the edge of a group.
  int merge = 2;
  /// Groups along the edge of a window of the vision tower's attention; at most 1: it has none.
  int window = 4;

  int group() const { return patch * merge; }
};

/// What the codec tells of one decoded frame, over the picture's grid of patches (of `PatchGrid::patch`
/// pixels; rows after each other). Borrowed.
struct CodecFrame {
  /// A frame that refers to no other. Nothing else is known of it.
  bool intra = false;
  /// V_t(i), CodecSight's equation 1: of each patch the length of the longest vector of a block that touches
  /// it, in pixels of the decoded frame; infinity where enough of it is coded without a reference to be new.
  /// Empty where the codec tells no vectors: then everything may have changed.
  std::span<const float> motion = {};
  /// R_t(i), equation 2: the sum of absolute differences between a patch's blocks and their
  /// motion-compensated predictions, in levels of luma of 8 bits, summed over pixels of the decoded frame.
  /// Empty where nobody computed it: to a policy that weighs it, everything may have changed then.
  std::span<const float> residual = {};
};

/// One sampled frame. Borrowed.
struct SampledPicture {
  /// As the vision tower gets it: its edges are multiples of a group's.
  model::PictureView picture;
  /// All frames that were decoded since the sample before, in order of presentation; this one is the last.
  std::span<const CodecFrame> frames;
};

/// What becomes of one temporal patch.
struct Choice {
  /// Groups that the vision tower computes.
  base::GridMask encoded;
  /// Groups that there are tokens of in the camera's stream; of those that are not encoded, which did not
  /// change, the last one that was made. Absent: those that are encoded, and the tower shows them no others.
  std::optional<base::GridMask> kept = std::nullopt;

  const base::GridMask& in_stream() const { return kept ? *kept : encoded; }
  bool is_whole() const { return encoded.has_all() && in_stream().has_all(); }
};

/// A policy follows one camera from its first patch on and remembers what the model has seen of it. Not
/// thread-safe.
class PruningPolicy {
 public:
  virtual ~PruningPolicy() = default;

  /// Whether it looks at motion vectors, which cost decoding time. If not, `frames` may be empty.
  virtual bool wants_motion() const = 0;

  /// Whether it looks at residuals too, which cost more of it.
  virtual bool wants_residual() const { return false; }

  /// What of one temporal patch is to be encoded, and kept: of a token that covers several frames, the union
  /// of what each calls for. `seconds`: time of its first frame, never decreasing. The size of the
  /// picture may change from patch to patch: nothing is known of the new one then. Throws
  /// std::invalid_argument for no frames, for frames of different sizes, for sizes that are no multiple of a
  /// group, and for motion that is not of the picture's grid.
  virtual Choice choose(double seconds, std::span<const SampledPicture> frames) = 0;

  /// The model did not take these groups of an earlier patch after all: what was there comes with the next
  /// one. A mask of another size than the camera has by now is ignored: all of that was chosen anew.
  virtual void lost(const base::GridMask& groups) = 0;

  /// From now on no more than this share of a picture's groups are kept of a patch, from 0 to 1, those that
  /// differ most; but for whole pictures, and what was lost. 1: as many as there are. A policy that
  /// cannot tell which groups matter most ignores it (`can_be_bound`).
  virtual void bound(double /*share*/) {}

  /// Whether the encoder is behind with its work. What changes nearly everywhere for long (snow, a camera
  /// that trembles) saves nothing by being chosen from; while the encoder is not behind, it may have all of
  /// it.
  virtual void spare(bool /*is_behind*/) {}
};

struct PruningOptions {
  PatchGrid grid = {};
  /// Patches that show the whole picture come so often, in seconds. `none` and `codecsight` have no such
  /// clock: whoever wants one in every window sees to it himself (actors/camera/patch_choice.h).
  double anchor_seconds = 40;
  /// Where in that time they come, from 0 to below 1: spreads a fleet's (`anchor_phase`).
  double anchor_phase = 0;
  /// CodecSight's τ, in pixels, and α, in pixels for a unit of residual (equations 3 and 4).
  float motion_threshold = 0.25F;
  float residual_weight = 0;
  /// Of `reference` and `dtd`: the least mean absolute difference of luma that counts, from 0 to 255.
  float luma_threshold = 6;
};

/// Evenly spread over names, and always the same for one: from 0 to below 1.
double anchor_phase(std::string_view camera);

/// The names that `make_pruning` knows.
inline constexpr std::array<std::string_view, 6> kPruningPolicies{"none", "codecsight", "reference",
                                                                  "dtd",  "scene",      "changes"};

/// Whether the policy of this name heeds `PruningPolicy::bound`.
constexpr bool can_be_bound(std::string_view policy) {
  return policy == "scene" || policy == "changes";
}

/// "none": everything. "codecsight": what moved since the last I-frame (equations 1 to 4 of CodecSight).
/// "reference": what differs from what the model last saw there. "dtd": what differs from the patch before
/// (TimeChat-Online's differential token drop, in pixels). "scene": what differs from what the model last saw
/// there in other than light, what moved in the patch before with what is around that, and the whole picture
/// at once after a cut or a jump of the light; the stream keeps what changed lately, and now and then the
/// whole picture. "changes": of the same what changed or moved alone, in either. Throws std::invalid_argument
/// for another name and for options without sense.
std::unique_ptr<PruningPolicy> make_pruning(std::string_view name, const PruningOptions& options);

}  // namespace vigil::prune
