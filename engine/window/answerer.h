// The seam between whoever has frames and questions (actors, commands) and the engine that answers them.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/picture.h"
#include "engine/model/sampler.h"
#include "engine/model/visual_tokens.h"

namespace vigil::window {

/// The device of an engine failed in a way after which nothing more works on it: the engine's parts are of no
/// use any more, and can only be destroyed. What a device has no room for is a std::bad_alloc instead, of
/// which `what` says how much was wanted; the parts stay usable, and a call that wants less may succeed. Both
/// may come from every call below that computes. One that encodes or asks has kept nothing then and may be
/// made again, in smaller parts; answers are continued once, whatever comes of it (see AnswerGenerator).
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
  /// P("Yes") / (P("Yes") + P("No")) at the first token, over the spellings of both that the vocabulary has,
  /// calibrated if the model's folder says how. The text is the model's own: near one half, it may say "Yes"
  /// where this is below.
  float probability_yes = 0;
  std::vector<std::int32_t> tokens;
  FinishReason finish = FinishReason::end_of_turn;
  /// Tokens of the whole prompt, those of the frames included.
  std::int64_t prompt_tokens = 0;
  /// Of these, the ones that all questions of the window share: computed once, whatever their number.
  std::int64_t shared_tokens = 0;
};

/// A camera's window and the questions of its operators. The questions share the window's keys and values.
struct WindowRequest {
  /// In the order of time; equal `duration`.
  std::vector<model::VisualTokensPtr> patches;
  std::vector<Question> questions;
};

/// A window whose keys and values are in the cache and whose questions have been asked: their first tokens
/// are known. Its room in the cache is free again when it is destroyed, on whatever thread that happens. What
/// is between is for `AnswerGenerator`; otherwise one owner at a time.
class AskedWindow {
 public:
  virtual ~AskedWindow() = default;

  /// One for each question of its request: `probability_yes` and `prompt_tokens` hold, and the text so far is
  /// that of the first token.
  virtual std::span<const Answer> answers() const = 0;
};
using AskedWindowPtr = std::unique_ptr<AskedWindow>;

/// Puts windows into the cache and asks them their questions. One owner (an actor) at a time; it may run at
/// the same time as an `AnswerGenerator` over the same cache.
class WindowPrefiller {
 public:
  virtual ~WindowPrefiller() = default;

  /// The longest window, in visual tokens, for which the cache has room; negative where not even the text
  /// has.
  virtual std::int64_t max_visual_tokens() const = 0;

  /// Tokens that the cache has room for.
  virtual std::int64_t room() const = 0;

  /// Tokens of the cache that the request takes, with answers of full length, until its AskedWindow is gone.
  /// Throws std::invalid_argument for a window that cannot be asked: empty, of frames of several sizes, with
  /// a question that makes no sense.
  virtual std::int64_t room_for(const WindowRequest& request) const = 0;

  /// Asks all questions of all windows, in passes over the rows of all. Throws std::invalid_argument as
  /// `room_for` does and if the requests need more room than is free; then nothing was kept of any of them.
  virtual std::vector<AskedWindowPtr> ask(std::span<const WindowRequest> requests) = 0;
};

/// Which answer is to be completed.
struct Continuation {
  AskedWindow* window = nullptr;
  std::size_t question = 0;
};

/// What came of it.
struct Completion {
  Answer answer;
  /// Why there is no answer; null: there is one.
  std::exception_ptr failure;

  /// The answer, or throws the failure.
  Answer take() && {
    if (failure) std::rethrow_exception(failure);
    return std::move(answer);
  }
};

/// Completes answers: what is asked once is generated once, as long as its question allows. One owner (an
/// actor) at a time.
class AnswerGenerator {
 public:
  virtual ~AnswerGenerator() = default;

  /// One completion for each continuation, decoded together, one token of each a pass. What concerns one
  /// answer fails that one alone: std::invalid_argument for a window of another engine, a question that it
  /// does not have, an answer that was continued before, and logits that no token can be chosen from. Throws
  /// what fails a whole pass: none of these answers is completed then.
  virtual std::vector<Completion> generate(std::span<const Continuation> continuations) = 0;
};

/// Seconds spent, summed over calls.
struct AnswerTimes {
  double prefill = 0;
  double decode = 0;
};

/// Both in turn, for whoever wants whole answers in one call. Not thread-safe.
class WindowAnswerer {
 public:
  /// Both have to outlive it.
  WindowAnswerer(WindowPrefiller& prefiller, AnswerGenerator& generator)
      : prefiller_(prefiller), generator_(generator) {}

  std::int64_t max_visual_tokens() const { return prefiller_.max_visual_tokens(); }
  std::int64_t room() const { return prefiller_.room(); }

  /// Answers all questions of all windows, as many windows together as the cache has room for; result[i][j]
  /// belongs to requests[i].questions[j]. Throws std::invalid_argument for a window that cannot be asked or
  /// has no room, and the failure of the first answer that has one; then nothing was kept of any request.
  std::vector<std::vector<Answer>> answer(std::span<const WindowRequest> requests);

  const AnswerTimes& times() const { return times_; }

 private:
  WindowPrefiller& prefiller_;
  AnswerGenerator& generator_;
  AnswerTimes times_;
};

}  // namespace vigil::window
