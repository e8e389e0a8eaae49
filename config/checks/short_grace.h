// A grace period in which no window fits.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace vigil::config {

/// A line if what computes in a fleet, and ends, has less time for it than the longest window of a camera:
/// then windows are lost that others could have gone on with. Otherwise none.
std::vector<std::string> short_grace(const Settings& settings);

}  // namespace vigil::config
