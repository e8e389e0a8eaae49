#include "engine/speculate/acceptance.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace vigil::speculate {

namespace {

/// A draft counts half after so many others.
constexpr double kHalfLife = 64;
constexpr double kRestingHalfLife = 256;
constexpr double kTrustHalfLife = 512;
/// Hope, in standard deviations of what is believed.
constexpr double kHope = 0.5;

}  // namespace

Acceptance::Acceptance(double rate, double weight) : prior_rate_(rate), prior_weight_(weight) {
  if (!(rate >= 0 && rate <= 1) || !(weight > 0) || !std::isfinite(weight)) {
    throw std::invalid_argument("an acceptance is from 0 to 1, and its weight above 0");
  }
}

void Acceptance::judged(std::size_t drafts, std::size_t accepted) {
  const std::size_t right = std::min(accepted, drafts);
  const auto tried = static_cast<double>(std::min(right + 1, drafts));
  const double left = std::exp2(-tried / kHalfLife);
  accepted_ = accepted_ * left + static_cast<double>(right);
  tried_ = tried_ * left + tried;
  if (drafts > 0) trust_ = 1;
}

void Acceptance::rested(std::size_t tokens) {
  const double left = std::exp2(-static_cast<double>(tokens) / kRestingHalfLife);
  accepted_ *= left;
  tried_ *= left;
  trust_ *= std::exp2(-static_cast<double>(tokens) / kTrustHalfLife);
}

double Acceptance::rate() const {
  const double likeliest = (accepted_ + prior_rate_ * prior_weight_) / (tried_ + prior_weight_);
  // A rate of 0 or 1 has no deviation, though nobody knows it for sure.
  const double deviation = std::sqrt(std::max(likeliest * (1 - likeliest), 0.01));
  const double known = std::max(tried_ + prior_weight_ * trust_, 0.01);
  return std::min(likeliest + kHope * deviation / std::sqrt(known), std::max(likeliest, 0.95));
}

}  // namespace vigil::speculate
