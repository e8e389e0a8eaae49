// Loads in whole numbers: their sums are the same in any order and on any machine, which those of floating
// point are not.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace vigil::cluster {

/// Millionths of a load unit.
using LoadUnits = std::int64_t;

inline constexpr LoadUnits kLoadUnit = 1'000'000;
/// Of one item, in load units.
inline constexpr double kMostLoad = 1e6;
/// Of a placement. So many items of the greatest load can be added up.
inline constexpr std::size_t kMostItems = 4'000'000;
/// Of one node, and of a fleet.
inline constexpr LoadUnits kMostCapacity = 4'000'000'000'000'000'000;

__extension__ typedef unsigned __int128 Wide;

/// a · b / c, rounded down or up. Not negative; c above 0, and the result fits.
constexpr std::int64_t scaled(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>(static_cast<Wide>(a) * static_cast<Wide>(b) / static_cast<Wide>(c));
}
constexpr std::int64_t scaled_up(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>((static_cast<Wide>(a) * static_cast<Wide>(b) + static_cast<Wide>(c) - 1) /
                                   static_cast<Wide>(c));
}

/// Rounded up. Nothing for what is no number from 0 to kMostLoad.
inline std::optional<LoadUnits> load_units(double load) {
  if (!(load >= 0 && load <= kMostLoad)) return std::nullopt;
  return static_cast<LoadUnits>(std::ceil(load * static_cast<double>(kLoadUnit)));
}

/// Rounded down, and bounded by kMostCapacity, so that infinity is one. Nothing for NaN and below 0.
inline std::optional<LoadUnits> capacity_units(double capacity) {
  if (!(capacity >= 0)) return std::nullopt;
  const double units = std::floor(capacity * static_cast<double>(kLoadUnit));
  return units < static_cast<double>(kMostCapacity) ? static_cast<LoadUnits>(units) : kMostCapacity;
}

inline double in_load_units(LoadUnits units) {
  return units == kMostCapacity ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(units) / static_cast<double>(kLoadUnit);
}

}  // namespace vigil::cluster
