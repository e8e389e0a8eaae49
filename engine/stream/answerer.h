// The seam between whoever has frames and questions (actors, commands) and the engine that answers them.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/vision/visual_tokens.h"
#include "engine/stream/answer.h"

namespace vigil::stream {

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

}  // namespace vigil::stream
