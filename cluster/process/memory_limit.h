// How much memory there is for this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace vigil::cluster {

/// Bytes of memory that this process may use: the machine's, or less where its control group, or one above
/// that, has a limit (cgroup v2, or v1). Nothing where nobody says. `root`: the folder in which proc/ and
/// sys/fs/cgroup/ are.
std::optional<std::uint64_t> memory_limit(const std::filesystem::path& root = "/");

}  // namespace vigil::cluster
