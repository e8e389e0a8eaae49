// Questions about whole clips, for whoever waits for the answers: commands and benches, in one thread.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/model/vision/visual_tokens.h"
#include "engine/stream/answer.h"
#include "engine/stream/stream_desk.h"

namespace vigil::stream {

/// A clip and what is asked about it. The questions share its keys and values.
struct ClipRequest {
  /// In the order of time; of equal size and duration.
  std::vector<model::VisualTokensPtr> patches;
  std::vector<Question> questions;
};

/// There is no answer, for the reason that it tells.
class NoAnswer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Each clip is a stream of its own, which goes when the clip was answered. Nothing else uses the desk
/// meanwhile. Not thread-safe.
class Clips {
 public:
  /// They have to outlive it. `decoder`: the desk at which answers go on after their first token; null: the
  /// same.
  Clips(StreamDesk& desk, QuestionCompiler& questions, const base::Clock& clock,
        StreamDesk* decoder = nullptr)
      : desk_(desk), questions_(questions), clock_(clock), decoder_(decoder) {}

  /// A clip whose questions were asked: their first tokens are known, `answers[i]` of the i-th.
  struct Asked {
    WindowId window;
    std::vector<Answer> answers;
  };
  /// Asks all questions of all clips, which have room together or wait for each other: then the answers of
  /// those that were asked first are continued first. Throws std::invalid_argument for a clip that can never
  /// be asked and NoAnswer for what failed; then nothing is kept of any.
  std::vector<Asked> ask(std::span<const ClipRequest> clips);

  /// Completes all answers of clips that `ask` returned. Throws the first failure; then nothing is kept of
  /// any.
  std::vector<std::vector<Answer>> complete(std::vector<Asked> asked);

  /// Both, as many clips together as there is room for.
  std::vector<std::vector<Answer>> answer(std::span<const ClipRequest> clips);

  /// Seconds spent so far.
  struct Times {
    double prefill = 0;
    double decode = 0;
  };
  const Times& times() const { return times_; }

 private:
  WindowId ask_one(const ClipRequest& clip);
  /// False if there is nothing to go on with.
  bool go_on(const WindowId& window, std::size_t question);

  StreamDesk& desk_;
  QuestionCompiler& questions_;
  const base::Clock& clock_;
  StreamDesk* decoder_;
  std::uint64_t clips_ = 0;
  Times times_;
};

}  // namespace vigil::stream
