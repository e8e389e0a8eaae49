// What a node needs of the machine that it is on, by its configuration and its roles: of its start, and of
// `vigil check-config`.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cluster/membership/node_roles.h"
#include "cluster/peers/peer_address.h"
#include "config/settings.h"

namespace vigil::services {

/// What `--roles` was given. Throws UsageError.
std::set<cluster::NodeRole> roles_of(const std::vector<std::string>& names);

/// Throws std::runtime_error for what is no HOST:PORT: one line.
cluster::PeerAddress address_of(const std::string& text);
/// Where others reach it with messages: the host is the one that its certificate has to be for. Throws as
/// `address_of` does.
cluster::PeerAddress control_of(const config::ClusterSettings& cluster);

/// Whether it reads the model's folder: all but gateways do.
bool needs_model(const std::set<cluster::NodeRole>& roles);

}  // namespace vigil::services
