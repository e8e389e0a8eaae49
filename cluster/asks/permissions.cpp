#include "cluster/asks/permissions.h"

#include <variant>

namespace vigil::cluster {

Permission may(const Permissions& permissions, const Asker& who, const std::string& tenant, bool erase) {
  if (!who.key) return Permission::granted;
  const auto found = permissions.find(*who.key);
  if (found == permissions.end()) return Permission::hidden;
  const KeyRights& rights = found->second;
  if (!rights.all_tenants && !rights.tenants.contains(tenant)) return Permission::hidden;
  return erase && !rights.erase ? Permission::forbidden : Permission::granted;
}

std::optional<AskRefusal> refusal_of(const Permissions& permissions, const Asker& who,
                                     const AskRequest& request, const std::optional<std::string>& tenant) {
  const auto camera = camera_of(request);
  if (!camera) return std::nullopt;
  const auto* question = std::get_if<AskQuestion>(&request);
  const bool another = question != nullptr && question->tenant && question->tenant != tenant;
  const bool erase = std::holds_alternative<MemoryErase>(request);
  const Permission permission =
      tenant && !another ? may(permissions, who, *tenant, erase) : Permission::hidden;
  switch (permission) {
    case Permission::granted:
      return std::nullopt;
    case Permission::forbidden:
      return AskRefusal{AskRefusalType::forbidden, "this key may not erase"};
    case Permission::hidden:
      break;
  }
  return AskRefusal{AskRefusalType::bad_request, "there is no camera " + std::string(*camera)};
}

}  // namespace vigil::cluster
