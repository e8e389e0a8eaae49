// vigil node: this process as a node of a fleet.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actors/status/status_actor.h"
#include "base/fnv1a.h"
#include "cluster/bulk/socket_bulk.h"
#include "cluster/peers/peer_system.h"
#include "cluster/process/clock.h"
#include "cluster/process/end_requests.h"
#include "cluster/process/process.h"
#include "cluster/process/system.h"
#include "cluster/registry/etcd_registry.h"
#include "config/file/load.h"
#include "engine/model/files/fingerprint.h"
#include "fleet/dock/dock_actor.h"
#include "fleet/node/node_actor.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/ending.h"
#include "services/frame_shape.h"
#include "services/service_parts.h"
#include "services/signals.h"
#include "services/slow_path_warnings.h"
#include "services/state_server.h"

namespace vigil::services {
namespace {

/// The forms of messages of this build.
constexpr cluster::ProtocolRange kProtocol{1, 1};

/// How long a node that is asked to end hands its cameras over, of its grace.
constexpr int kDrainShare = 2;
/// How long the registry may take to let it go.
constexpr std::chrono::seconds kLeavePatience{2};

struct NodeArguments {
  std::string config;
  std::vector<std::string> roles;
  std::string name;
};

std::set<cluster::NodeRole> roles_of(const std::vector<std::string>& names) {
  std::set<cluster::NodeRole> roles;
  for (const std::string& name : names) {
    const auto role = cluster::parse_role(name);
    if (!role)
      throw UsageError("--roles: unknown role '" + name +
                       "' (known: camera, vision, stream, generate, cache, gateway)");
    roles.insert(*role);
  }
  using cluster::NodeRole;
  for (const NodeRole role : {NodeRole::cache, NodeRole::gateway})
    if (roles.contains(role))
      throw UsageError("--roles: '" + std::string(cluster::name_of(role)) + "' has nothing to do yet");
  const bool computes = roles.contains(NodeRole::stream);
  for (const NodeRole role : {NodeRole::vision, NodeRole::generate})
    if (roles.contains(role) != computes)
      throw UsageError("--roles: vision, stream and generate go together, for now");
  return roles;
}

std::string random_name() {
  std::random_device random;
  std::string name;
  for (int i = 0; i < 16; ++i) name += "0123456789abcdef"[random() % 16];
  return name;
}

/// Every node begins with another of etcd's servers: what they have most to do is to tell nodes of each
/// other.
cluster::EtcdRegistry::Options registry_of(const config::ClusterSettings& cluster, const std::string& node,
                                           spdlog::logger& logger) {
  const config::RegistrySettings& settings = cluster.registry;
  cluster::EtcdRegistry::Options options;
  options.endpoints = settings.endpoints;
  if (!options.endpoints.empty())
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
  options.log = [&logger](const std::string& line) { logger.warn("registry: {}", line); };
  return options;
}

/// Tells the node what its port hears, once there is one.
class PortOwner final : public cluster::BulkOwner {
 public:
  void set(fleet::node_actor node) {
    const std::lock_guard lock(mutex_);
    node_ = std::move(node);
  }
  void received(const std::string& peer, cluster::BulkReceived received) override {
    tell(std::make_shared<fleet::BulkArrival>(fleet::BulkArrival{peer, std::move(received)}));
  }
  void room(const std::string& peer) override { tell(fleet::BulkNews{peer, fleet::BulkNews::What::room}); }
  void opened(const std::string& peer, cluster::BulkDirection direction, std::uint64_t incarnation) override {
    tell(fleet::BulkNews{peer, fleet::BulkNews::What::opened, direction, incarnation});
  }
  void reset(const std::string& peer, const cluster::BulkReset& reset) override {
    tell(fleet::BulkNews{peer, fleet::BulkNews::What::ended, reset.direction, 0,
                         std::string(cluster::name_of(reset.why))});
  }

 private:
  template <class Message>
  void tell(Message message) {
    const std::lock_guard lock(mutex_);
    if (node_) caf::anon_send(node_, std::move(message));
  }

  std::mutex mutex_;
  fleet::node_actor node_;
};

fleet::NodeWays ways_of(cluster::PeerSystem& peers, cluster::PeerSockets& sockets, cluster::BulkPort& bulk) {
  return {.find =
              [&peers](const cluster::PeerAddress& address, auto done) {
                peers.find(address, [done = std::move(done)](auto found) {
                  if (auto* reason = std::get_if<std::string>(&found)) return done(std::move(*reason));
                  done(caf::actor_cast<fleet::greeter_actor>(std::get<caf::strong_actor_ptr>(found)));
                });
              },
          .resolve = [&sockets](const cluster::PeerAddress& address,
                                auto done) { sockets.resolve(address, std::move(done)); },
          .bulk = &bulk};
}

cluster::PeerAddress address_of(const std::string& text) {
  const auto address = cluster::parse_peer(text);
  if (!address) throw std::runtime_error("cluster: '" + text + "' is no HOST:PORT");
  return *address;
}

std::vector<cluster::PeerAddress> seeds_of(const config::ClusterSettings& cluster) {
  std::vector<cluster::PeerAddress> seeds;
  seeds.reserve(cluster.seeds.size());
  for (const std::string& seed : cluster.seeds) seeds.push_back(address_of(seed));
  return seeds;
}

/// Hands over what the node has, as far as there are others, and lets all of it end. Returns the exit code.
int end_node(caf::actor_system& system, const fleet::node_actor& node,
             const actors::supervisor_actor& supervisor, const fleet::dock_actor& dock, base::Duration grace,
             bool was_expelled, Announcer& announcer) {
  int code = was_expelled ? kFailed : kDone;
  // One that goes before its end is waited for would be waited for, too.
  caf::scoped_actor self{system};
  if (!was_expelled)
    self->request(node, grace / kDrainShare, fleet::drain_atom_v)
        .receive([](bool) {},
                 [&](const caf::error&) { announcer.warn("some cameras were not handed over in time"); });
  if (supervisor) {
    caf::anon_send(supervisor, actors::stop_atom_v);
    const actors::DrainReport report = wait_for_end(system, supervisor);
    for (const std::string& failure : report.failures) announcer.error(failure);
    if (!report.failures.empty()) code = kFailed;
  }
  self->monitor(node);
  self->send(node, actors::stop_atom_v);
  self->receive([](const caf::down_msg&) {}, caf::after(kLeavePatience) >> [] {});
  if (dock) self->send(dock, actors::stop_atom_v);
  return code;
}

int run_node(const config::Settings& settings, const std::set<cluster::NodeRole>& roles,
             const std::string& name, Ending& ending, spdlog::logger& logger, Announcer& announcer) {
  using cluster::NodeRole;
  const config::ClusterSettings& own = settings.cluster;
  const bool reads = roles.contains(NodeRole::camera);
  const bool computes = roles.contains(NodeRole::stream);
  const cluster::SystemClock clock;
  const auto folder = model::ModelFolder::open(settings.model);
  actors::Metrics metrics(actors::Metrics::Options{.cameras = settings.metrics.cameras});
  metrics.build(kVersion, kCommit);
  actors::StatusBoard board(clock);

  cluster::SystemConfig system_config;
  system_config.add_message_types<caf::id_block::vigil>();
  system_config.add_message_types<caf::id_block::vigil_fleet>();
  cluster::use_peers(system_config);
  const auto log_warning = [&logger](const std::string& line) { logger.warn("{}", line); };
  cluster::PeerSockets::Options peer_options;
  if (!own.tls_dir.empty())
    peer_options.certificates = std::make_shared<cluster::NodeCertificates>(own.tls_dir, log_warning);
  peer_options.allow_plain_text = own.allow_plain_text;
  peer_options.log = log_warning;
  cluster::PeerSockets sockets(peer_options);
  caf::actor_system system(system_config);
  cluster::PeerSystem peers(system, sockets);

  const actors::status_actor status =
      system.spawn<caf::hidden>(actors::status, actors::StatusDeps{board, metrics, logger});
  const StateServer server(settings.metrics, metrics, system, status, clock, log_warning);

  PortOwner port_owner;
  const auto keys = own.tls_dir.empty() ? std::nullopt : std::optional(cluster::make_key_pair());
  cluster::SocketBulk bulk(
      {.name = name, .seed = std::random_device{}()},
      {.endpoint = "tcp://" + own.bulk, .keys = keys, .plain_text_beyond_loopback = own.allow_plain_text},
      port_owner, clock);
  cluster::EtcdRegistry registry(registry_of(own, name, logger));

  // Whatever may not be there, before anything runs that would have to be told to end.
  const std::string fingerprint = model::fingerprint(settings.model);
  std::optional<EventParts> events;
  if (reads) events.emplace(settings, clock, metrics, logger);

  const SlowPathWarnings slow_paths([&announcer](const std::string& line) { announcer.warn(line); });
  const actors::FrameShape shape = frame_shape(*folder);
  fleet::dock_actor dock;
  if (computes) {
    dock = system.spawn<caf::detached>(
        fleet::dock, fleet::DockDeps{.devices = devices_of(settings.engine, folder, announcer),
                                     .group = shape.grid.group(),
                                     .clock = clock,
                                     .metrics = metrics,
                                     .board = board,
                                     .logger = logger});
  }
  actors::supervisor_actor supervisor;
  if (reads) {
    const auto cameras = cameras_of(settings);
    supervisor = system.spawn(
        actors::supervisor,
        actors::PipelineDeps{.cameras = {},
                             .once = false,
                             .grace = settings.shutdown_grace,
                             .name = name,
                             .retention = settings.alerts.retention,
                             .model_id = folder->name(),
                             .open = media::VideoReader::open,
                             .reach = make_reach,
                             .dial = dial_limits(cameras, events->evidence().has_value(), announcer),
                             .shape = shape,
                             .devices = {},
                             .devices_elsewhere = true,
                             .outbox = events->outbox(),
                             .publisher = events->publisher(),
                             .metrics = metrics,
                             .board = board,
                             .clock = clock,
                             .logger = logger,
                             .seed = std::random_device{}(),
                             .threads = actors::Threads::own,
                             .evidence = events->evidence()});
  }

  cluster::NodeRecord record;
  record.name = name;
  record.incarnation = random_name();
  record.roles = roles;
  record.state = cluster::NodeState::ready;
  record.control = address_of(own.listen);
  record.bulk = address_of(own.bulk);
  if (!own.advertise.empty()) record.control.host = record.bulk.host = own.advertise;
  if (keys) record.bulk_key = keys->public_key;
  record.version = kVersion;
  record.commit = kCommit;
  record.protocol = kProtocol;
  record.model = fingerprint;
  record.weight = own.weight;
  record.cameras = own.max_cameras;
  record.streams = own.max_streams;

  std::atomic<bool> was_expelled{false};
  const fleet::node_actor node =
      system.spawn(fleet::node, fleet::NodeDeps{.fleet = own.name,
                                                .record = record,
                                                .lease = own.lease,
                                                .seeds = seeds_of(own),
                                                .registry = registry,
                                                .ways = ways_of(peers, sockets, bulk),
                                                .cameras = settings.cameras,
                                                .supervisor = supervisor,
                                                .dock = dock,
                                                .group = shape.grid.group(),
                                                .clock = clock,
                                                .metrics = metrics,
                                                .board = board,
                                                .logger = logger,
                                                .expelled = [&](const std::string& why) {
                                                  announcer.error(why);
                                                  was_expelled = true;
                                                  ending.ask();
                                                }});
  port_owner.set(node);
  try {
    peers.publish(address_of(own.listen), caf::actor_cast<caf::strong_actor_ptr>(node), {});
  } catch (const std::exception& error) {
    // What runs has to be told to end.
    announcer.error(error.what());
    was_expelled = true;
  }
  std::promise<void> ended;
  if (!was_expelled) {
    const Ending::Stopping stopping(ending, [&ended, asked = std::make_shared<std::once_flag>()] {
      std::call_once(*asked, [&ended] { ended.set_value(); });
    });
    std::string what;
    for (const cluster::NodeRole role : roles)
      what += (what.empty() ? "" : ",") + std::string(cluster::name_of(role));
    announcer.info("node " + name + " of fleet " + own.name + ": " + what + "; nodes on " + own.listen +
                   (server.url().empty() ? "" : ", metrics on " + server.url()));
    ended.get_future().wait();
  }
  const int code = end_node(system, node, supervisor, dock, settings.shutdown_grace, was_expelled, announcer);
  if (end_within(system, kBesidesGrace)) return code;
  announcer.error("some of what computes did not come to an end and was left");
  leave(logger);
  return kFailed;
}

int run(const NodeArguments& arguments) {
  const std::set<cluster::NodeRole> roles = roles_of(arguments.roles);
  check_threads(kThreads);
  Ending ending(kDone);
  const cluster::SystemClock clock;
  cluster::EndRequests requests(clock);
  const Signals handler(
      [&] {
        const auto meaning = requests.take();
        if (meaning == cluster::EndRequests::Meaning::quit) quit();
        if (meaning == cluster::EndRequests::Meaning::nothing) return;
        ending.ask();
      },
      [] {});
  config::Settings settings;
  try {
    settings = config::load(arguments.config);
  } catch (const config::ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
  const auto logger = make_logger(settings.log);
  Announcer announcer(*logger);
  try {
    if (settings.cluster.name.empty())
      throw std::runtime_error("cluster.name: is missing in " + arguments.config);
    if (settings.cluster.registry.endpoints.empty())
      throw std::runtime_error("cluster.registry.endpoints: is missing in " + arguments.config);
    // Before anything runs that would have to be told to end.
    static_cast<void>(address_of(settings.cluster.listen));
    static_cast<void>(address_of(settings.cluster.bulk));
    static_cast<void>(seeds_of(settings.cluster));
    std::string name = !arguments.name.empty() ? arguments.name : settings.name;
    if (name.empty()) name = cluster::host_name();
    return run_node(settings, roles, name, ending, *logger, announcer);
  } catch (const std::exception& error) {
    announcer.error(error.what());
    return kFailed;
  }
}

}  // namespace

void add_node(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("node", "Be a node of a fleet");
  auto arguments = std::make_shared<NodeArguments>();
  command->add_option("--config", arguments->config, "the fleet's configuration, with a section `cluster`")
      ->required()
      ->type_name("FILE");
  command
      ->add_option(
          "--roles", arguments->roles,
          "what it does, with commas: camera; vision, stream and generate, which go together for now")
      ->required()
      ->delimiter(',')
      ->type_name("ROLE");
  command
      ->add_option("--name", arguments->name,
                   "this node's name, instead of the configuration's or the host's")
      ->type_name("NAME");
  command->footer(
      "The first SIGTERM or SIGINT hands its cameras over to other nodes, finishes what is under way within "
      "the configuration's grace period, and ends.\n"
      "Example: vigil node --roles camera,vision,stream,generate --config fleet.yaml");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace vigil::services
