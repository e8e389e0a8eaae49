// What is asked about a window, and what comes of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/language/sampler.h"

namespace vigil::stream {

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

/// The visual tokens of a window.
struct WindowTokens {
  std::int64_t visual = 0;
  /// Of these, the ones whose keys an earlier window has left; and those that were computed anew all the
  /// same.
  std::int64_t kept = 0;
  std::int64_t refreshed = 0;
  /// Of those that were kept, the ones whose keys were looked at before it was known which to compute anew:
  /// about a layer each.
  std::int64_t probed = 0;

  std::int64_t reused() const { return kept - refreshed; }
  /// For the first time.
  std::int64_t fresh() const { return visual - kept; }
  friend bool operator==(const WindowTokens&, const WindowTokens&) = default;
};

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

}  // namespace vigil::stream
