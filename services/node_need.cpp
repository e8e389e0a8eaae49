#include "services/node_need.h"

#include <stdexcept>

#include "fleet/node/engine_need.h"
#include "services/command.h"

namespace vigil::services {

std::set<cluster::NodeRole> roles_of(const std::vector<std::string>& names) {
  try {
    return cluster::parse_roles(names);
  } catch (const std::invalid_argument& error) {
    throw UsageError("--roles: " + std::string(error.what()));
  }
}

cluster::PeerAddress address_of(const std::string& text) {
  const auto address = cluster::parse_peer(text);
  if (!address) throw std::runtime_error("cluster: '" + text + "' is no HOST:PORT");
  return *address;
}

cluster::PeerAddress control_of(const config::ClusterSettings& cluster) {
  return cluster::told_address(address_of(cluster.listen), cluster.advertise);
}

bool needs_model(const std::set<cluster::NodeRole>& roles) {
  return roles.contains(cluster::NodeRole::camera) || fleet::halves_of(roles);
}

}  // namespace vigil::services
