#include "fleet/node/engine_need.h"

namespace vigil::fleet {

using cluster::ModelNeed;
using cluster::NodeRole;

std::optional<engine::Halves> halves_of(const std::set<NodeRole>& roles) {
  const bool encodes = cluster::need(roles, ModelNeed::tower);
  if (!cluster::need(roles, ModelNeed::language))
    return encodes ? std::optional(engine::Halves::tower) : std::nullopt;
  return encodes ? engine::Halves::both : engine::Halves::language;
}

config::EngineSettings engine_of(config::EngineSettings settings, const std::set<NodeRole>& roles) {
  if (!roles.contains(NodeRole::stream) || !roles.contains(NodeRole::generate))
    settings.decode_device.clear();
  return settings;
}

}  // namespace vigil::fleet
