// What is computed of what changed little, as the command line says it.
#pragma once

#include <vector>

#include <CLI/CLI.hpp>

#include "config/settings.h"

namespace vigil::services {

/// Adds --prune, --motion-threshold, --residual-weight, --refresh and --refresh-share, which are a camera's
/// `pruning` in the configuration.
std::vector<CLI::Option*> add_pruning(CLI::App& command, config::PruningSettings& pruning);

}  // namespace vigil::services
