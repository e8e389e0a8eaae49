// What is computed of what changed little, and kept, as the command line says it.
#pragma once

#include <vector>

#include <CLI/CLI.hpp>

#include "config/settings.h"

namespace vigil::services {

/// Adds --pruning, a preset, and --prune, --motion-threshold, --residual-weight, --refresh, --refresh-share
/// and
/// --kv-budget, which override it wherever they stand. They are a camera's `pruning` in the configuration.
/// Returns them. `pruning` has the defaults, and has to outlive the command.
std::vector<CLI::Option*> add_pruning(CLI::App& command, config::PruningSettings& pruning);

}  // namespace vigil::services
