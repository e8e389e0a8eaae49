#include "cluster/asks/permissions.h"

namespace vigil::cluster {

KeyRights rights_of(const Permissions& permissions, const Asker& who) {
  if (!who.key) return {.all_tenants = true, .erase = true};
  const auto found = permissions.find(*who.key);
  return found == permissions.end() ? KeyRights{} : found->second;
}

}  // namespace vigil::cluster
