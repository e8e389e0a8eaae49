// Scores and weights as whole numbers: sums of them are exact, so that their order does not matter and every
// device chooses the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace vigil::kernels::wicsum {

/// To the nearest whole number, ties to even, of numbers below 2^51.
constexpr double rounded(double value) {
  constexpr double kWhole = 0x1.8p52;
  return (value + kWhole) - kWhole;
}

/// A score in units of 2^-16; what is beyond 2^15 is there, what is no number at -2^15.
constexpr std::int32_t fixed_score(float score) {
  const double value = static_cast<double>(score) * 0x1p16;
  if (!(value > -0x1p31)) return std::numeric_limits<std::int32_t>::min();
  if (value >= 0x1p31 - 1) return std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(rounded(value));
}

/// What lies so far below the highest score has no weight: 22 > 31 ln 2.
inline constexpr std::int64_t kLowest = std::int64_t{22} << 16U;

/// exp(-below 2^-16) in units of 2^-30, rounded down from the first ten terms of 2^-f's series, which are
/// within 2^-31 of it. 2^30 at 0, and 0 from kLowest on.
constexpr std::int64_t fixed_exp(std::int64_t below) {
  constexpr std::uint64_t kLog2e = 1586259972792;  // in units of 2^-40
  if (below >= kLowest) return 0;
  const std::uint64_t power = (static_cast<std::uint64_t>(below) * kLog2e) >> 24U;  // in units of 2^-32
  const std::uint64_t halvings = power >> 32U;
  if (halvings > 30) return 0;
  const std::uint64_t fraction = power & 0xffffffffU;
  // (ln 2)^k / k! in units of 2^-32: 2^-f = Σ_k (-1)^k (f ln 2)^k / k!
  constexpr std::array<std::uint64_t, 11> kTerms{
      4294967296, 2977044472, 1031764991, 238388332, 41309550, 5726720, 661577, 65510, 5676, 437, 30};
  std::uint64_t sum = kTerms[10];
  for (std::size_t k = 10; k > 0; --k) sum = kTerms[k - 1] - ((fraction * sum) >> 32U);
  return static_cast<std::int64_t>((sum >> 2U) >> halvings);
}

/// A share of a row's sum in units of 2^-40. A division of doubles is the same everywhere.
constexpr std::int64_t fixed_share(std::int64_t weight, std::int64_t sum) {
  return static_cast<std::int64_t>(rounded(static_cast<double>(weight) / static_cast<double>(sum) * 0x1p40));
}

/// The ratio 1.
inline constexpr std::int64_t kEverything = std::int64_t{1} << 20U;

/// A ratio in units of 2^-20.
constexpr std::int64_t fixed_ratio(double ratio) {
  return static_cast<std::int64_t>(rounded(ratio * 0x1p20));
}

/// The ratio's part of a sum, rounded down: a whole number exceeds the one if it exceeds the other.
constexpr std::int64_t part_of(std::int64_t sum, std::int64_t ratio) {
  const std::int64_t high = sum >> 20U;  // downwards, also below 0
  const std::int64_t low = sum & 0xfffff;
  return high * ratio + ((low * ratio) >> 20U);
}

}  // namespace vigil::kernels::wicsum
