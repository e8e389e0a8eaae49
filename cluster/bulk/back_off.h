// How long to wait before something is tried again.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace vigil::cluster {

/// Twice as long each time, up to the longest; half of each pause is up to chance, so that those who lost
/// something together do not all come back together. Not thread-safe.
class BackOff {
 public:
  BackOff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest), next_(first) {}

  std::chrono::nanoseconds next(std::mt19937_64& random) {
    const std::chrono::nanoseconds whole = next_;
    next_ = std::min(2 * next_, longest_);
    return whole / 2 + std::chrono::nanoseconds(random() % static_cast<std::uint64_t>(whole.count() / 2 + 1));
  }
  void reset() { next_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_;
};

}  // namespace vigil::cluster
