// Whether a folder can be written, before anything is.
#pragma once

#include <filesystem>
#include <string>

namespace vigil::base {

/// Why this process can put nothing into a folder that is there, such as "Permission denied"; empty if it
/// can, as far as its rights tell: its disk may be full.
std::string why_unwritable(const std::filesystem::path& folder);

}  // namespace vigil::base
