#include "services/fleet_registry.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/fnv1a.h"
#include "config/file/load.h"

namespace vigil::services {

cluster::EtcdRegistry::Options registry_of(const config::ClusterSettings& cluster,
                                           std::function<void(const std::string&)> log,
                                           const std::string& node) {
  const config::RegistrySettings& settings = cluster.registry;
  cluster::EtcdRegistry::Options options;
  options.endpoints = settings.endpoints;
  if (!node.empty() && !options.endpoints.empty())
    std::rotate(
        options.endpoints.begin(),
        options.endpoints.begin() + static_cast<std::ptrdiff_t>(base::fnv1a(node) % options.endpoints.size()),
        options.endpoints.end());
  if (settings.ca_file.empty()) {
    options.plain_text = true;
  } else {
    options.tls = cluster::EtcdTlsFiles{.ca_file = settings.ca_file,
                                        .cert_file = settings.certificate.cert_file,
                                        .key_file = settings.certificate.key_file};
  }
  options.user = settings.username;
  options.password = settings.password.value;
  options.log = std::move(log);
  return options;
}

std::vector<std::string> missing_in(const config::ClusterSettings& cluster) {
  std::vector<std::string> missing;
  if (cluster.name.empty()) missing.emplace_back("cluster.name: is missing");
  if (cluster.registry.endpoints.empty()) missing.emplace_back("cluster.registry.endpoints: is missing");
  return missing;
}

void need_all(const config::ClusterSettings& cluster, const std::filesystem::path& file) {
  const std::vector<std::string> missing = missing_in(cluster);
  if (!missing.empty()) throw std::runtime_error(missing.front() + " in " + file.string());
}

config::ClusterSettings cluster_of(const std::string& text, const std::filesystem::path& file) {
  try {
    config::parse_cluster(text, file, config::process_environment());
  } catch (const config::ConfigError& error) {
    for (const config::Problem& problem : error.problems())
      if (problem.message.starts_with("cluster.registry")) throw;
  }
  config::ClusterSettings cluster =
      config::parse_cluster(text, file, config::process_environment(), config::Unset::accepted);
  need_all(cluster, file);
  return cluster;
}

cluster::FleetStore fleet_store(const config::ClusterSettings& cluster,
                                std::function<void(const std::string&)> log) {
  return {std::make_unique<cluster::EtcdRegistry>(registry_of(cluster, std::move(log))), cluster.name};
}

}  // namespace vigil::services
