// How old files are by the time that processes lived beside them, kept in a file.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/duration.h"

namespace vigil::actors {

/// By name.
using LivedAges = std::map<std::string, base::Duration>;

/// What was written last; empty if there is no such file, or it is damaged: too young is better than too old.
LivedAges read_lived_ages(const std::filesystem::path& file);

/// The file appears whole or not at all. Names that hold a line's end are left out. Throws base::FileError.
void write_lived_ages(const std::filesystem::path& file, const LivedAges& ages);

}  // namespace vigil::actors
