// What becomes of one sequence's drafts in a pass of the target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/language/sampler.h"
#include "engine/speculate/streams.h"

namespace vigil::speculate {

/// What the target says after the last token of the answer (row 0) and after each draft that went through its
/// pass (row i after draft i); as little of each row is asked for as the sampling needs. One owner at a time.
class TargetRows {
 public:
  virtual ~TargetRows() = default;

  virtual std::size_t count() const = 0;
  /// The id of the largest logit, the first of equal ones; -1 if none is above -infinity.
  virtual std::int32_t likeliest(std::size_t row) = 0;
  /// The `count` largest logits, or all above -infinity if these are fewer: the largest first, equal ones by
  /// id. `count` is at most `most_likeliest()`. Until the next call.
  virtual std::span<const model::Candidate> likeliest(std::size_t row, std::size_t count) = 0;
  virtual std::size_t most_likeliest() const = 0;
  /// [vocabulary], until the next call.
  virtual std::span<const float> logits(std::size_t row) = 0;
};

/// A token of the answer, in order; false if the answer ends with it (end token, stop string, length). Then
/// no other is chosen, as plain decoding would choose none.
using TakeToken = std::function<bool(std::int32_t token)>;

/// What came of one round.
struct Verdict {
  /// So many of `tokens`, the first ones, are drafts.
  std::size_t accepted = 0;
  /// What the answer gets: the accepted drafts, and one token more (the correction of the first that was
  /// rejected, or what follows the last one), unless the rows or the answer end before.
  std::vector<std::int32_t> tokens;
  /// The answer ended with the last one of `tokens`.
  bool ended = false;
};

/// The sampler says each token from the target's rows, as plain decoding does, for as long as the draft was
/// the same; so the answer is plain decoding's, whatever the drafts are. `sampler` is afterwards as if it had
/// chosen `tokens` and seen no draft. Any id may be a draft. There are as many rows as drafts, or one more;
/// else std::invalid_argument. Throws as Sampler::next at a row that no token can be chosen from; tokens
/// before it were taken and are remembered.
Verdict verify_by_seed(model::Sampler& sampler, std::span<const std::int32_t> drafts, TargetRows& rows,
                       const TakeToken& take);

/// A token that a drafter proposes.
struct Draft {
  std::int32_t id = 0;
  /// What it was really drawn from. Empty where it was not drawn at all (an n-gram): then it alone was
  /// possible.
  std::vector<model::Likelihood> from;
};

/// Draws a draft at `step` from what the drafter's sampler makes of its logits [vocabulary]. `drafter`
/// remembers nothing: whoever goes on with the draft says so (Sampler::follow). Throws as Sampler::next.
Draft draw_draft(const model::Sampler& drafter, std::span<const float> logits, const Uniform& uniform,
                 std::uint64_t step);

/// Equation 1 of HIPPO on p, what `sampler` makes of the target's rows, and q, what each draft was drawn
/// from: a draft is accepted with probability min(1, p/q), otherwise a token of norm(max(0, p - q)) takes its
/// place; after the last draft one of p. So the tokens have the distribution of plain decoding, though not
/// its choices. `step`: how many tokens of the answer came before. `sampler` is afterwards as if it had
/// chosen `tokens`. Rows and errors as above; also std::invalid_argument for a draft that `from` does not
/// hold, which was not drawn from it. Asks for all logits, unless the likeliest token is all that is needed.
Verdict verify_by_rejection(model::Sampler& sampler, const Uniform& uniform, std::uint64_t step,
                            std::span<const Draft> drafts, TargetRows& rows, const TakeToken& take);

}  // namespace vigil::speculate
