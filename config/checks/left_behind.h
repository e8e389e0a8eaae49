// Folders that earlier versions made where they were started, rather than beside the configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/settings.h"

namespace vigil::config {

/// A line for each folder (outbox, evidence) that is named by default and not there yet, while one of its
/// name is in the working directory: what is in that is not read. To be asked before they are made.
std::vector<std::string> left_behind(const Settings& settings,
                                     const std::filesystem::path& working_directory);

}  // namespace vigil::config
