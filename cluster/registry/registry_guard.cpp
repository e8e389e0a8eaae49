#include "cluster/registry/registry_guard.h"

#include <algorithm>
#include <cstdio>

namespace vigil::cluster {
namespace {

/// As etcdctl shows it.
std::string hex(std::uint64_t number) {
  std::string digits(16, '\0');
  const int size = std::snprintf(digits.data(), digits.size() + 1, "%lx", number);
  digits.resize(static_cast<std::size_t>(size));
  return digits;
}

}  // namespace

std::optional<std::string> RegistryGuard::see(const RegistryHeader& header) {
  if (!seen_) {
    seen_ = header;
    return std::nullopt;
  }
  if (header.history < seen_->history) return std::nullopt;
  if (header.history == seen_->history) {
    seen_->revision = std::max(seen_->revision, header.revision);
    return std::nullopt;
  }
  const RegistryHeader before = *seen_;
  seen_ = header;
  if (header.cluster != before.cluster)
    return "replaced: it is cluster " + hex(header.cluster) + " now, and was " + hex(before.cluster);
  return "went back from revision " + std::to_string(before.revision) + " to " +
         std::to_string(header.revision) + ", as a restored backup does";
}

}  // namespace vigil::cluster
