// What is looked at before a fleet's configuration goes into its registry.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/file/load.h"

namespace vigil::config {

/// What keeps nodes whose own text is `own` from running by `text`, the fleet's; none: nothing does. Places
/// are those in `text`, and what is wrong of both together has none. Of a text that cannot be read that is
/// told alone, and of one in which passwords stand these, since nobody is to read it. Paths are taken as
/// relative to `file`, which is the text's. Throws ConfigError, of `own_file`, if what is the fleet's stands
/// in `own`, and std::runtime_error if that is no YAML.
std::vector<Problem> problems_of_offer(const std::string& text, const std::filesystem::path& file,
                                       const std::string& own, const std::filesystem::path& own_file,
                                       const Environment& environment);

}  // namespace vigil::config
