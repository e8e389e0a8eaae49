// Figures about measurements.
#pragma once

#include <vector>

namespace vigil::bench {

/// The smallest value that at least a share of all values do not exceed (nearest rank); 0 without values.
/// `share`: from 0 to 1.
double percentile(std::vector<double> values, double share);

}  // namespace vigil::bench
