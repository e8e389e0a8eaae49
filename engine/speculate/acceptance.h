// How many of one sequence's drafts are accepted.
#pragma once

#include <cstddef>

namespace vigil::speculate {

/// An estimate of the probability that a draft is accepted, given that all before it were. It begins with
/// what others had, and what is long ago counts less. One owner at a time.
class Acceptance {
 public:
  /// What is believed at first, and as much as after so many drafts. Throws std::invalid_argument for a rate
  /// outside [0, 1] or a weight that is not above 0.
  explicit Acceptance(double rate = 0.7, double weight = 4);

  /// Of the drafts of a round: those up to the first that was rejected tell something, those behind it
  /// nothing.
  void judged(std::size_t drafts, std::size_t accepted);
  /// The answer got so many tokens while the drafter rested: what was known counts for less and less.
  void rested(std::size_t tokens);

  /// A little more than what is likeliest, the more so the less is known: one that has rested for long is
  /// tried again, whatever was believed.
  double rate() const;

 private:
  double prior_rate_;
  double prior_weight_;
  /// Of the prior, what resting has left.
  double trust_ = 1;
  double accepted_ = 0;
  double tried_ = 0;
};

}  // namespace vigil::speculate
