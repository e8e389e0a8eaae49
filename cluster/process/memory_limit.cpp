#include "cluster/process/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace vigil::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

/// A number at the beginning of a text; kNone: there is none ("max").
std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : kNone;
}

std::uint64_t machine_memory(const fs::path& root) {
  constexpr std::string_view kKey = "MemTotal:";
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    const std::size_t digit = line.find_first_not_of(' ', kKey.size());
    const std::uint64_t kib = digit == line.npos ? kNone : number_of(std::string_view(line).substr(digit));
    return kib > kNone >> 10U ? kNone : kib << 10U;
  }
  return kNone;
}

/// The least of a group's limits and those of the groups above it, as far as they can be seen.
std::uint64_t limit_of(const fs::path& groups, fs::path group, const char* name) {
  std::uint64_t least = kNone;
  for (;; group = group.parent_path()) {
    std::string line;
    if (std::ifstream file(groups / group / name); std::getline(file, line))
      least = std::min(least, number_of(line));
    if (group.empty()) return least;
  }
}

}  // namespace

std::optional<std::uint64_t> memory_limit(const fs::path& root) {
  std::uint64_t least = machine_memory(root);
  const fs::path groups = root / "sys/fs/cgroup";
  // HIERARCHY:CONTROLLERS:/PATH; of v2 without controllers.
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,") {
      least = std::min(least, limit_of(groups, group, "memory.max"));
    } else if (controllers.find(",memory,") != controllers.npos) {
      least = std::min(least, limit_of(groups / "memory", group, "memory.limit_in_bytes"));
    }
  }
  return least == kNone ? std::nullopt : std::optional(least);
}

}  // namespace vigil::cluster
