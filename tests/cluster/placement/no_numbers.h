// What is no load and no capacity.
#pragma once

#include <limits>

namespace vigil::cluster {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace vigil::cluster
