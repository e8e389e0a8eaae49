// The seam between whoever has frames and questions (actors, commands) and the engine that answers them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/picture.h"
#include "engine/model/sampler.h"
#include "engine/model/visual_tokens.h"

namespace vigil::window {

/// One temporal patch of a camera: the consecutive frames that the vision tower folds into one (usually two).
struct PatchFrames {
  /// `frames_per_patch()` views of equal size, oldest first. A shorter list is completed by repeating its
  /// last frame.
  std::vector<model::PictureView> frames;
  /// Time of the first frame in seconds of its stream, and the time that the patch covers.
  double seconds = 0;
  double duration = 0;
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
  /// order. Throws std::invalid_argument for a frame whose size is not a multiple of the model's patch group.
  virtual std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) = 0;
};

/// What is asked about a window.
struct Question {
  std::string text;
  /// 1 is enough for yes or no; more lets the model explain.
  int max_tokens = 1;
  model::Sampling sampling;
  /// If set, called with each new piece of the answer's text, whole UTF-8 characters only, while it is
  /// generated.
  std::function<void(std::string_view piece)> on_text;
};

enum class FinishReason : std::uint8_t { end_of_turn, length, stop };

struct Answer {
  std::string text;
  /// P("Yes") / (P("Yes") + P("No")) at the first token, over the spellings of both that the vocabulary has.
  float probability_yes = 0;
  std::vector<std::int32_t> tokens;
  FinishReason finish = FinishReason::end_of_turn;
  /// Tokens of the whole prompt, those of the frames included.
  std::int64_t prompt_tokens = 0;
};

/// A camera's window and the questions of its operators. The questions share the window's keys and values.
struct WindowRequest {
  /// In the order of time; equal `duration`.
  std::vector<model::VisualTokensPtr> patches;
  std::vector<Question> questions;
};

/// Seconds spent, summed over calls.
struct AnswerTimes {
  double prefill = 0;
  double decode = 0;
};

/// Answers questions about windows. Implementations are not thread-safe: one owner (an actor) at a time.
class WindowAnswerer {
 public:
  virtual ~WindowAnswerer() = default;

  /// The longest window, in visual tokens, for which `answer` has room.
  virtual std::int64_t max_visual_tokens() const = 0;

  /// Answers all questions of all windows; result[i][j] belongs to requests[i].questions[j].
  /// Throws std::invalid_argument for an empty window or one that has no room; then nothing was kept of any
  /// request.
  virtual std::vector<std::vector<Answer>> answer(std::span<const WindowRequest> requests) = 0;

  virtual const AnswerTimes& times() const = 0;
};

}  // namespace vigil::window
