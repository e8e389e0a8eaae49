// How long a step takes, learned from those that were measured.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vigil::speculate {

/// What a step has to do.
struct StepShape {
  /// Tokens that enter, of all sequences together.
  std::size_t rows = 1;
  std::size_t sequences = 1;
  /// Tokens that are attended to, of all sequences together.
  std::size_t context = 0;
};

/// What is said of a step before any was measured, in seconds: a sum.
struct StepGuess {
  double step = 1e-3;
  double row = 0;
  double context_token = 0;
};

/// A running estimate of a step's time, by rows, sequences and context. What was measured corrects the guess:
/// all of it a little, that of like rows more, and most where rows, sequences and context are alike. A
/// measurement counts no more than a few usual deviations, so that a hiccup is no news, while many of them
/// are; what is long ago counts less. One owner at a time.
class StepTimes {
 public:
  /// Throws std::invalid_argument for a guess that is not a time.
  explicit StepTimes(const StepGuess& guess);

  /// Seconds of a step that was done. Times that are none (NaN, 0, less) are dropped.
  void measured(const StepShape& shape, double seconds);
  /// In seconds.
  double expected(const StepShape& shape) const;

  /// Of steps with so many sequences and so much context, for many numbers of rows: `at(rows)` is cheap.
  class ByRows {
   public:
    double at(std::size_t rows) const;

   private:
    friend class StepTimes;
    static constexpr std::size_t kKnots = 12;
    double fixed_ = 0;
    double row_ = 0;
    std::array<double, kKnots> factors_{};
  };
  ByRows by_rows(std::size_t sequences, std::size_t context) const;

  /// So many decisions were made without a measurement: what is known fades towards the guess, half of it in
  /// 512. Costs a thousand products: now and then, not with every decision.
  void fade(double decisions);

 private:
  static constexpr std::size_t kKnots = ByRows::kKnots;
  static constexpr std::size_t kSequences = 8;
  static constexpr std::size_t kContexts = 12;

  /// The logarithm of a factor on what is above it, and how much speaks for it.
  struct Correction {
    double log = 0;
    double weight = 0;
  };
  std::size_t cell(std::size_t knot, std::size_t sequences, std::size_t context) const;
  double log_factor(std::size_t knot, std::size_t cell) const;
  double guess(const StepShape& shape) const;

  StepGuess guess_;
  Correction all_;
  std::array<Correction, kKnots> rows_{};
  std::vector<Correction> cells_;
  /// Of the measurements' logarithms from what was expected: the usual one.
  double deviation_ = 0.1;
};

}  // namespace vigil::speculate
