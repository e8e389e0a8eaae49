// How much a pass may take at once, by what the device had room for.
#pragma once

#include <algorithm>
#include <cstddef>

namespace vigil::actors {

/// Halved when a pass ran out of memory; one more, up to what was wanted, after some passes in a row of as
/// many as were allowed. One is always tried, so that what does not fit alone is refused with the device's
/// own reason. Not thread-safe.
class BatchLimit {
 public:
  explicit BatchLimit(std::size_t most) : most_(most), now_(most) {}

  std::size_t now() const { return now_; }

  /// A pass of so many did not fit.
  void too_many(std::size_t tried) {
    now_ = std::max<std::size_t>(1, std::min(now_, tried) / 2);
    full_ = 0;
  }

  /// A pass of so many did.
  void fitted(std::size_t tried) {
    constexpr int kPasses = 16;
    if (now_ == most_ || tried < now_ || ++full_ < kPasses) return;
    ++now_;
    full_ = 0;
  }

 private:
  std::size_t most_;
  std::size_t now_;
  /// Passes in a row that took all that was allowed.
  int full_ = 0;
};

}  // namespace vigil::actors
