// What a node's actors stand on: what is checked, and what is made before any of them runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <spdlog/logger.h>

#include "actors/messages/data.h"
#include "actors/status/fleet_series.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "cluster/bulk/socket_bulk.h"
#include "cluster/peers/peer_system.h"
#include "cluster/process/clock.h"
#include "cluster/process/system.h"
#include "cluster/registry/etcd_registry.h"
#include "cluster/registry/timed_registry.h"
#include "engine/engine.h"
#include "services/fleet_routes.h"
#include "services/memory_parts.h"
#include "services/node_events.h"
#include "services/node_process.h"
#include "services/node_ways.h"
#include "services/reload_loop.h"
#include "services/slow_path_warnings.h"
#include "services/state_server.h"

namespace vigil::services {

/// What a node is, by its command line and its configuration: what is checked before anything is made. Throws
/// std::runtime_error: one line. `start` has to outlive it.
struct NodeIdentity {
  explicit NodeIdentity(const NodeStart& node);

  const NodeStart& start;
  const config::Settings& settings;
  const config::ClusterSettings& cluster;
  /// Whether it reads cameras, and keeps the events of all.
  const bool reads;
  const bool keeps;
  /// Whether what cameras saw is remembered here.
  const bool remembers;
  /// Nothing: it computes nothing.
  const std::optional<engine::Halves> halves;
  /// Where others reach it.
  const cluster::PeerAddress control;
  const cluster::PeerAddress bulk;
  const std::vector<cluster::PeerAddress> seeds;
  const std::string incarnation = random_name();
};

/// What is made: nothing of it has to be told to end, and each may know those before it. Throws for what is
/// not there, or cannot be had. All that it is made of has to outlive it, and it the node's actors.
struct NodeGround {
  NodeGround(const NodeIdentity& self, spdlog::logger& to, Announcer& announcer);

  /// What it shows of itself.
  struct Shown {
    Shown(const NodeIdentity& self, const base::Clock& clock);
    actors::Metrics metrics;
    actors::StatusBoard board;
  };
  struct SystemConfig : cluster::SystemConfig {
    SystemConfig();
  };
  /// The actor system, and its way to those of other nodes.
  struct Systems {
    Systems(const NodeIdentity& self, spdlog::logger& logger);
    SystemConfig config;
    cluster::PeerSockets sockets;
    caf::actor_system system;
    cluster::PeerSystem peers;
  };
  /// What it answers over HTTP.
  struct Pages {
    Pages(const NodeIdentity& self, Shown& shown, caf::actor_system& system, const base::Clock& clock,
          spdlog::logger& logger);
    const actors::status_actor status;
    FleetRoutes fleet;
    const StateServer server;
  };
  struct Bulk {
    Bulk(const NodeIdentity& self, const base::Clock& clock, spdlog::logger& logger);
    PortOwner owner;
    /// Nothing: its bytes are not encrypted.
    const std::optional<cluster::KeyPair> keys;
    cluster::SocketBulk port;
  };
  struct Registry {
    Registry(const NodeIdentity& self, actors::Metrics& metrics, const base::Clock& clock,
             spdlog::logger& logger);
    actors::FleetSeries series;
    cluster::EtcdRegistry etcd;
    cluster::TimedRegistry timed;
  };

  spdlog::logger& logger;
  const cluster::SystemClock clock;
  /// Null: it needs nothing of the model.
  const std::shared_ptr<const model::ModelFolder> folder;
  Shown shown;
  Systems systems;
  Pages pages;
  Bulk bulk;
  Registry registry;
  /// Of the model; empty: it has none.
  const std::string fingerprint;
  /// Nothing: it reads no cameras; it is no gateway.
  std::optional<MadeEvents> made;
  std::optional<KeptEvents> kept;
  /// Nothing: no stream is here, whose past could be remembered.
  std::optional<MemoryParts> memory;
  const SlowPathWarnings slow_paths;
  const actors::FrameShape shape;
  ReloadNews news;
};

}  // namespace vigil::services
