// Rules that nobody is asked.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace vigil::config {

/// A line for each rule of the top-level `rules` whose labels no camera has: that is allowed, since cameras
/// come and go, and most often a slip.
std::vector<std::string> idle_rules(const Settings& settings);

}  // namespace vigil::config
