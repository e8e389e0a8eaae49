// A fleet's registry as commands use it: one question after the other, each waited for.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/membership/config_agreement.h"
#include "cluster/membership/fleet_keys.h"
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

/// Throws std::runtime_error when the registry does not answer or refuses. Not thread-safe.
class FleetRegistry {
 public:
  /// `log` gets lines of the registry's own thread.
  explicit FleetRegistry(const config::ClusterSettings& cluster,
                         std::function<void(const std::string&)> log = {});

  const cluster::FleetKeys& keys() const { return keys_; }

  std::vector<cluster::RegistryEntry> range(const std::string& prefix);
  /// The value of one key.
  std::optional<cluster::RegistryEntry> find(const std::string& key);
  /// Whether its conditions held.
  bool commit(cluster::RegistryTransaction transaction);
  /// Changes one key, again if another one was quicker; `change` is given what is there, and gives what is to
  /// be there.
  void change(const std::string& key,
              const std::function<std::string(const std::optional<std::string>&)>& change);

  /// What the fleet runs by, by the registry's own word; and the nodes' records. What cannot be read of these
  /// is left out, and is in `unread`: a line each, with its key.
  std::optional<cluster::FleetConfig> config();
  std::map<std::string, cluster::NodeRecord> nodes();
  const std::set<std::string>& unread() const { return unread_; }
  /// The text that was put with this content; nothing if there is none (any more).
  std::optional<std::string> text(const std::string& hash);
  /// Puts a text, and offers it to the nodes. Returns its content.
  std::string put_text(const std::string& text);

 private:
  void forget_texts(const std::string& newest);

  const cluster::FleetKeys keys_;
  cluster::EtcdRegistry registry_;
  std::set<std::string> unread_;
};

}  // namespace vigil::services
