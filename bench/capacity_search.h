// How many cameras to try next.
#pragma once

#include <optional>

namespace vigil::bench {

/// The largest number that holds, by doubling and then halving the difference. What is between two tried
/// numbers is taken to be monotonic. Not thread-safe.
class CapacitySearch {
 public:
  /// Begins with `start` and tries no more than `most`; both at least 1. Throws std::invalid_argument.
  CapacitySearch(int start, int most);

  /// What to try; nothing when the search is over: the largest number that held and the smallest that did not
  /// differ by 1, or by a sixteenth, or `most` held.
  std::optional<int> next() const;

  /// The outcome for `next()`.
  void tried(bool held);

  /// The largest number that held; 0 if none did.
  int held() const { return held_; }

 private:
  int start_;
  int most_;
  int held_ = 0;
  /// The smallest that did not hold.
  std::optional<int> failed_;
};

}  // namespace vigil::bench
