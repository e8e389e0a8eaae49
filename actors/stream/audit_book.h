// What the audits of a camera say of its pruning.
#pragma once

#include <cstddef>
#include <deque>

#include "config/settings.h"

namespace vigil::actors {

/// Answers that differ from those of a whole computation too often make the camera prune less, a step at a
/// time
/// (`pruned_less`); when none has for as long, it goes a step back. Not thread-safe.
class AuditBook {
 public:
  /// The answers that count, and how many of them may differ.
  static constexpr std::size_t kAnswers = 30, kMayDiffer = 2;

  /// Of a camera with these settings another answer was audited. True: `steps` is another now.
  bool hear(bool agrees, const config::PruningSettings& pruning);

  int steps() const { return steps_; }
  /// Of the last `kAnswers`, since the last step.
  std::size_t answers() const { return agreed_.size(); }

 private:
  std::deque<bool> agreed_;
  std::size_t differing_ = 0;
  int steps_ = 0;
};

}  // namespace vigil::actors
