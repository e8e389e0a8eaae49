// How much may be spent at once, and how much in the long run.
#pragma once

#include <algorithm>

namespace vigil::prune {

/// A bucket that fills steadily. Not thread-safe.
class Allowance {
 public:
  /// Begins full.
  explicit Allowance(double most) : most_(most), left_(most) {}

  void earn(double by) { left_ = std::min(most_, left_ + by); }
  /// More than is left is owed, at most as much as it holds.
  void spend(double by) { left_ = std::max(-most_, left_ - by); }
  double left() const { return left_; }

 private:
  double most_;
  double left_;
};

}  // namespace vigil::prune
