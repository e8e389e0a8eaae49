#include "services/fleet_registry.h"

#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "base/fnv1a.h"
#include "cluster/membership/config_texts.h"
#include "config/file/fleet.h"
#include "config/file/load.h"

namespace vigil::services {
namespace {

constexpr int kAttempts = 20;

/// Calls, and waits for the answer, which comes within the registry's time.
template <class T, class Call>
T answer(Call&& call) {
  const auto promise = std::make_shared<std::promise<cluster::RegistryResult<T>>>();
  auto future = promise->get_future();
  call([promise](cluster::RegistryResult<T> result) { promise->set_value(std::move(result)); });
  auto result = future.get();
  if (const auto* failure = std::get_if<cluster::RegistryFailure>(&result))
    throw std::runtime_error(failure->text);
  return std::get<T>(std::move(result));
}

}  // namespace

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

FleetRegistry::FleetRegistry(const config::ClusterSettings& cluster,
                             std::function<void(const std::string&)> log)
    : keys_(cluster.name), registry_(registry_of(cluster, std::move(log))) {}

std::vector<cluster::RegistryEntry> FleetRegistry::range(const std::string& prefix) {
  return answer<cluster::RegistryRange>([&](auto done) { registry_.range(prefix, std::move(done)); }).entries;
}

std::optional<cluster::RegistryEntry> FleetRegistry::find(const std::string& key) {
  for (cluster::RegistryEntry& entry : range(key))
    if (entry.key == key) return std::move(entry);
  return std::nullopt;
}

bool FleetRegistry::commit(cluster::RegistryTransaction transaction) {
  return answer<cluster::RegistryCommit>(
             [&](auto done) { registry_.commit(std::move(transaction), std::move(done)); })
      .made;
}

void FleetRegistry::change(const std::string& key,
                           const std::function<std::string(const std::optional<std::string>&)>& change) {
  for (int i = 0; i < kAttempts; ++i) {
    const auto there = find(key);
    std::string value = change(there ? std::optional(there->value) : std::nullopt);
    if (there && there->value == value) return;
    if (commit({.conditions = {{key, there ? there->modified : 0}},
                .changes = {cluster::RegistryPut{key, std::move(value)}}}))
      return;
  }
  throw std::runtime_error("the registry: others change " + key + " all the time");
}

std::optional<cluster::FleetConfig> FleetRegistry::config() {
  const auto entry = find(keys_.config());
  if (!entry) return std::nullopt;
  try {
    return cluster::parse_config(entry->value);
  } catch (const std::exception& error) {
    // As nodes do, who write it anew once all of them agree.
    unread_.insert(entry->key + ": " + error.what());
    return std::nullopt;
  }
}

std::map<std::string, cluster::NodeRecord> FleetRegistry::nodes() {
  std::map<std::string, cluster::NodeRecord> nodes;
  for (const cluster::RegistryEntry& entry : range(keys_.nodes())) {
    try {
      cluster::NodeRecord record = cluster::parse_node(entry.value);
      std::string name = record.name;
      nodes.emplace(std::move(name), std::move(record));
    } catch (const std::exception& error) {
      unread_.insert(entry.key + ": " + error.what());
    }
  }
  return nodes;
}

std::optional<std::string> FleetRegistry::text(const std::string& hash) {
  return cluster::whole_text(range(keys_.config_text(hash)), keys_.config_text(hash));
}

std::string FleetRegistry::put_text(const std::string& text) {
  const std::string hash = cluster::content_hash(config::fleet_part(text));
  const std::string prefix = keys_.config_text(hash);
  const std::vector<std::string> parts = cluster::parts_of(text);
  std::set<std::string> written;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string key = cluster::part_key(prefix, i, parts.size());
    commit({.conditions = {}, .changes = {cluster::RegistryPut{key, parts[i]}}});
    written.insert(key);
  }
  // Of a text of the same content that was longer, or shorter.
  for (const cluster::RegistryEntry& entry : range(prefix))
    if (!written.contains(entry.key))
      commit({.conditions = {}, .changes = {cluster::RegistryDelete{entry.key}}});
  change(keys_.config_offer(), [&](const auto&) { return hash; });
  forget_texts(hash);
  return hash;
}

/// But for those that a node may still ask for.
void FleetRegistry::forget_texts(const std::string& newest) {
  constexpr std::size_t kBefore = 8;
  std::set<std::string> kept = {newest};
  const std::size_t unread = unread_.size();
  if (const auto now = config()) {
    kept.insert(now->hash);
    for (std::size_t i = 0; i < std::min(kBefore, now->before.size()); ++i) kept.insert(now->before[i]);
  }
  // Which those are, nobody can say then.
  if (unread_.size() > unread) return;
  for (const cluster::RegistryEntry& entry : range(keys_.config_texts())) {
    const std::string rest = entry.key.substr(keys_.config_texts().size());
    if (!kept.contains(rest.substr(0, rest.find('/'))))
      commit({.conditions = {}, .changes = {cluster::RegistryDelete{entry.key}}});
  }
}

}  // namespace vigil::services
