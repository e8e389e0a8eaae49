// A fleet's registry, as the section `cluster` of a configuration says where it is.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cluster/membership/fleet_store.h"
#include "cluster/registry/etcd_registry.h"
#include "config/settings.h"

namespace vigil::services {

/// etcd, as the section `cluster` says. Each `node` begins with another of its servers: what they have most
/// to do is to tell nodes of each other.
cluster::EtcdRegistry::Options registry_of(const config::ClusterSettings& cluster,
                                           std::function<void(const std::string&)> log,
                                           const std::string& node = "");

/// What a node needs of its fleet, and this section has not: a sentence each.
std::vector<std::string> missing_in(const config::ClusterSettings& cluster);
/// Throws std::runtime_error that says the first of it.
void need_all(const config::ClusterSettings& cluster, const std::filesystem::path& file);

/// The section `cluster` of a file that may have nothing else, for whoever asks the registry: variables in
/// addresses of the node's own need not be set. Throws.
config::ClusterSettings cluster_of(const std::string& text, const std::filesystem::path& file);

/// What the fleet keeps there, in that etcd. `log` gets lines of the registry's own thread.
cluster::FleetStore fleet_store(const config::ClusterSettings& cluster,
                                std::function<void(const std::string&)> log = {});

}  // namespace vigil::services
