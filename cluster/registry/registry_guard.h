// Says that a registry is not any more the one that it was.
#pragma once

#include <optional>
#include <string>

#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Is given the header of every answer and of all news of one registry, in any order. Not thread-safe.
class RegistryGuard {
 public:
  /// A line for the log, once each time when the registry was replaced (another cluster) or went back (a
  /// smaller revision than was known, as after a restored backup). Then all that was read of it is void.
  std::optional<std::string> see(const RegistryHeader& header);

 private:
  /// Of the latest history, the greatest revision.
  std::optional<RegistryHeader> seen_;
};

}  // namespace vigil::cluster
