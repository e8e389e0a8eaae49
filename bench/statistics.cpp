#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vigil::bench {

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  // A hair less, so that 0.95 of 100 values is the 95th whatever the rounding of 0.95.
  const double rank = std::ceil(share * static_cast<double>(values.size()) - 1e-9);
  const auto index =
      static_cast<std::size_t>(std::clamp(rank - 1, 0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

}  // namespace vigil::bench
