// From logits to the next token, and from tokens to the end of an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vigil::model {

/// How the answer's tokens are chosen.
struct Sampling {
  /// 0 chooses the likeliest token.
  float temperature = 0;
  /// 0: no limit.
  int top_k = 0;
  float top_p = 1;
  /// Above 1, tokens of the prompt and the answer become less likely (as transformers does).
  float repetition_penalty = 1;
  std::uint64_t seed = 0;
  /// Each ends the answer where it begins; it is not part of the answer.
  std::vector<std::string> stop;
};

/// Throws std::invalid_argument naming the field that is out of range.
void validate(const Sampling& sampling);

/// A token and its logit, penalized and divided by the temperature where that is due.
struct Candidate {
  float score = 0;
  std::int32_t id = 0;
};

/// A token that may be chosen, and how likely it is.
struct Likelihood {
  std::int32_t id = 0;
  double probability = 0;
};

/// Chooses one answer's tokens. The steps are those of transformers, in its order: repetition penalty,
/// temperature, top-k (tokens that tie with the last one stay), top-p, softmax. One owner at a time.
///
/// The draw is the inverse of the cumulative distribution, the likeliest token first, at a point that a
/// counter-based generator gives: SplitMix64 of (seed, step). So the same seed gives the same answer on every
/// machine, however steps are batched.
class Sampler {
 public:
  /// Throws as `validate`. `prompt` holds the ids that the repetition penalty counts as seen; ids outside the
  /// vocabulary are ignored.
  Sampler(const Sampling& sampling, std::span<const std::int32_t> prompt);

  /// Chooses a token from f32 logits [vocabulary], and remembers it. NaN counts as impossible. Throws
  /// std::invalid_argument if no logit is above -infinity.
  std::int32_t next(std::span<const float> logits);

  /// Whether `next` is the likeliest token as it stands, so that only its id is needed.
  bool takes_likeliest() const { return sampling_.temperature == 0 && sampling_.repetition_penalty == 1; }

  /// `next` where `takes_likeliest`: `likeliest` is the id of the largest logit, -1 if none is above
  /// -infinity (then std::invalid_argument).
  std::int32_t take(std::int32_t likeliest);

  /// As if it had chosen this one: an answer goes on in another process.
  void follow(std::int32_t token);

  /// How many of the likeliest tokens `next_of` wants: some more than top-k, in case the last ones tie. 0 if
  /// `next` needs all logits, for a repetition penalty or without a top-k.
  std::size_t wanted() const;

  /// `next` from the tokens with the largest logits alone, the largest first: at least `wanted()` of them, or
  /// all that have a logit above -infinity. Nothing, and nothing is remembered, if that does not tell which
  /// tokens tie with the last one of top-k; then `next` does. Throws as `next`.
  std::optional<std::int32_t> next_of(std::span<const Candidate> likeliest);

  /// The distribution that `next` draws from: the likeliest first, equal ones by id; probabilities add up
  /// to 1.
  std::vector<Likelihood> distribution(std::span<const float> logits) const;

 private:
  bool seen(std::int32_t id) const;
  void remember(std::int32_t id);
  float penalized(std::span<const float> logits, std::size_t id) const;
  std::vector<Likelihood> distribution_of(std::vector<Candidate> candidates) const;
  std::int32_t draw(std::span<const Likelihood> choices);

  Sampling sampling_;
  std::uint64_t step_ = 0;
  std::vector<bool> seen_;
};

/// Watches the text of an answer for stop strings. Text is held back as long as it may be the beginning of
/// one.
class StopStrings {
 public:
  /// Throws std::invalid_argument for an empty stop string.
  explicit StopStrings(std::vector<std::string> stop);

  /// The text that can be given out after this piece. After a stop string was found: what came before it,
  /// then nothing any more.
  std::string push(std::string_view piece);
  /// What was held back, once no more text comes.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stop_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace vigil::model
