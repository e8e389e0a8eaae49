// Frames become visual tokens; and what every part of an engine throws when its device is gone.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/grid_mask.h"
#include "engine/model/vision/picture.h"
#include "engine/model/vision/visual_tokens.h"

namespace vigil::run {

/// The device of an engine failed in a way after which nothing more works on it: the engine's parts are of no
/// use any more, and can only be destroyed. What a device has no room for is a std::bad_alloc instead, of
/// which `what` says how much was wanted; the parts stay usable, and a call that wants less may succeed. Both
/// may come from every call below that computes, which has kept nothing then and may be made again, in
/// smaller parts; a desk does that by itself (stream/stream_desk.h).
class DeviceLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One temporal patch of a camera: the consecutive frames that the vision tower folds into one (usually two).
struct PatchFrames {
  /// `frames_per_patch()` views of equal size, oldest first. A shorter list is completed by repeating its
  /// last frame.
  std::vector<model::PictureView> frames;
  /// Time of the first frame in seconds of its stream, and the time that the patch covers.
  double seconds = 0;
  double duration = 0;
  /// Which merged squares of the frames are encoded; absent: all.
  std::optional<base::GridMask> encoded = std::nullopt;
  /// Of which there are tokens in the end; absent: of those that are encoded, which see no others then.
  /// If it is there, the encoder remembers the camera's frame: squares that are not encoded are seen by the
  /// others as they were, and their tokens are those that were last made of them. What it does not remember
  /// any more is encoded after all.
  std::optional<base::GridMask> kept = std::nullopt;
  /// Which squares of the frames have pixels; absent: all. Those of others are not looked at.
  std::optional<base::GridMask> pixels = std::nullopt;
  /// The few that differ most from what is usual there, of which the tokens say so; absent: nobody said.
  std::optional<base::GridMask> standing_out = std::nullopt;
  /// Whose frames they are. Only for what is to be remembered.
  std::string camera = {};
  /// One of the frames refers to no other (an I-frame).
  bool intra = false;
};

/// Turns frames into visual tokens. `encode` has one caller at a time (an actor); `frames_per_patch` and
/// `frame_size` depend on nothing that changes and may be called from any thread at any time.
class VisionEncoder {
 public:
  virtual ~VisionEncoder() = default;

  /// Frames that make one temporal patch.
  virtual int frames_per_patch() const = 0;

  /// The size to which frames of this source size have to be scaled before `encode`.
  virtual model::PictureSize frame_size(model::PictureSize source) const = 0;

  /// Encodes patches of any number of cameras and sizes in one pass; the result has one entry a patch, in
  /// order: null for a patch of which squares would have to be encoded that have no pixels, since what is
  /// remembered of the camera does not suffice. Throws std::invalid_argument for a frame whose size is not a
  /// multiple of the model's patch group, and for groups that are not those of the frames.
  virtual std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) = 0;

  /// Nothing of this camera follows: what is remembered of it goes. From any thread at any time.
  virtual void forget(const std::string& camera) { static_cast<void>(camera); }
};

}  // namespace vigil::run
