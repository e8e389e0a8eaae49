#include "services/node_ground.h"

#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>

#include "actors/status/status_actor.h"
#include "engine/model/files/fingerprint.h"
#include "fleet/messages/types.h"
#include "fleet/node/engine_need.h"
#include "services/build_info.h"
#include "services/fleet_registry.h"
#include "services/frame_shape.h"
#include "services/node_need.h"

namespace vigil::services {
namespace {

/// Nodes of a fleet that one may have to do with, and some in between an old connection and a new one.
constexpr int kMostConnections = 4096;

const config::ClusterSettings& complete(const config::ClusterSettings& cluster,
                                        const std::filesystem::path& file) {
  need_all(cluster, file);
  return cluster;
}

std::function<void(const std::string&)> warnings_to(spdlog::logger& logger) {
  return [&logger](const std::string& line) { logger.warn("{}", line); };
}

cluster::PeerSockets::Options peer_options(const NodeIdentity& self, spdlog::logger& logger) {
  cluster::PeerSockets::Options options;
  if (!self.cluster.tls_dir.empty())
    options.certificates = std::make_shared<cluster::NodeCertificates>(
        self.cluster.tls_dir, warnings_to(logger), self.control.host);
  options.allow_plain_text = self.cluster.allow_plain_text;
  options.log = warnings_to(logger);
  return options;
}

}  // namespace

NodeIdentity::NodeIdentity(const NodeStart& node)
    : start(node),
      settings(*node.read->settings),
      cluster(complete(settings.cluster, node.source.file())),
      reads(node.roles.contains(cluster::NodeRole::camera)),
      keeps(node.roles.contains(cluster::NodeRole::gateway)),
      remembers(settings.memory.enabled && node.roles.contains(cluster::NodeRole::stream)),
      halves(fleet::halves_of(node.roles)),
      control(control_of(cluster)),
      bulk(cluster::told_address(address_of(cluster.bulk), cluster.advertise)),
      seeds(seeds_of(cluster)) {}

NodeGround::Shown::Shown(const NodeIdentity& self, const base::Clock& clock)
    : metrics(actors::Metrics::Options{.cameras = self.settings.metrics.cameras}), board(clock) {
  metrics.build(kVersion, kCommit);
  board.fleet({.fleet = self.cluster.name, .node = self.start.name});
}

NodeGround::SystemConfig::SystemConfig() {
  fleet::know_messages(*this);
  cluster::use_peers(*this);
}

NodeGround::Systems::Systems(const NodeIdentity& self, spdlog::logger& logger)
    : sockets(peer_options(self, logger)), system(config), peers(system, sockets) {}

NodeGround::Pages::Pages(const NodeIdentity& self, Shown& shown, caf::actor_system& system,
                         const base::Clock& clock, spdlog::logger& logger)
    : status(
          system.spawn<caf::hidden>(actors::status, actors::StatusDeps{shown.board, shown.metrics, logger})),
      fleet(system),
      server(self.settings.metrics, shown.metrics, system, status, clock, warnings_to(logger), {},
             fleet.routes()) {}

NodeGround::Bulk::Bulk(const NodeIdentity& self, const base::Clock& clock, spdlog::logger& logger) try
    : owner(logger),
      keys(self.cluster.tls_dir.empty() ? std::nullopt : std::optional(cluster::make_key_pair())),
      port({.name = self.start.name, .seed = std::random_device{}()},
           {.endpoint = "tcp://" + self.cluster.bulk,
            .keys = keys,
            .plain_text_beyond_loopback = self.cluster.allow_plain_text,
            .connections = kMostConnections},
           owner, clock) {
} catch (const cluster::BulkError& error) {
  throw std::runtime_error(std::string("cluster.bulk: ") + error.what());
}

NodeGround::Registry::Registry(const NodeIdentity& self, actors::Metrics& metrics, const base::Clock& clock,
                               spdlog::logger& logger)
    : series(metrics),
      etcd(registry_of(self.cluster, warnings_to(logger), self.start.name)),
      timed(etcd, clock, [this](auto time) { series.registry_answered(time); }) {}

NodeGround::NodeGround(const NodeIdentity& self, spdlog::logger& to, Announcer& announcer)
    : logger(to),
      // A gateway needs none.
      folder(needs_model(self.start.roles) ? model::ModelFolder::open(self.settings.model) : nullptr),
      shown(self, clock),
      systems(self, logger),
      pages(self, shown, systems.system, clock, logger),
      bulk(self, clock, logger),
      registry(self, shown.metrics, clock, logger),
      fingerprint(folder ? model::fingerprint(self.settings.model) : ""),
      slow_paths([&announcer](const std::string& line) { announcer.warn(line); }),
      shape(folder ? frame_shape(*folder) : actors::FrameShape{}),
      news(shown.metrics, logger) {
  if (self.reads) made.emplace(self.settings, self.keeps, clock, shown.metrics, logger);
  if (self.keeps) kept.emplace(self.settings, clock, shown.metrics, shown.board, logger);
  if (self.remembers)
    memory.emplace(self.settings.memory, *folder, clock, shown.metrics, shown.board, logger);
}

}  // namespace vigil::services
