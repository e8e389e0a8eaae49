// vigil node: this process as a node of a fleet.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
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

#include "actors/status/fleet_series.h"
#include "actors/status/status_actor.h"
#include "cluster/bulk/socket_bulk.h"
#include "cluster/peers/peer_system.h"
#include "cluster/process/clock.h"
#include "cluster/process/end_requests.h"
#include "cluster/process/file_watch.h"
#include "cluster/process/process.h"
#include "cluster/process/system.h"
#include "cluster/registry/etcd_registry.h"
#include "cluster/registry/timed_registry.h"
#include "config/file/fleet.h"
#include "config/file/load.h"
#include "config/file/references.h"
#include "config/schema/fields.h"
#include "engine/model/files/fingerprint.h"
#include "fleet/dock/dock_actor.h"
#include "fleet/events/maker_actor.h"
#include "fleet/evidence/fetcher_actor.h"
#include "fleet/node/node_actor.h"
#include "fleet/status/fleet_status_actor.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/ending.h"
#include "services/fleet_file.h"
#include "services/fleet_registry.h"
#include "services/fleet_routes.h"
#include "services/frame_shape.h"
#include "services/node_events.h"
#include "services/node_ways.h"
#include "services/protocol.h"
#include "services/reload_loop.h"
#include "services/service_parts.h"
#include "services/signals.h"
#include "services/slow_path_warnings.h"
#include "services/state_server.h"

namespace vigil::services {
namespace {

/// How long a node that reads cameras and is asked to end hands them over, of its grace: the rest is for what
/// is under way. One that only computes has nothing else to do.
constexpr int kDrainShare = 2;
/// Nodes of a fleet that one may have to do with, and some in between an old connection and a new one.
constexpr int kMostConnections = 4096;
/// How long the registry may take to let it go.
constexpr std::chrono::seconds kLeavePatience{2};

struct NodeArguments {
  std::string config;
  std::vector<std::string> roles;
  std::string name;
};

/// The configuration's file, and what was read of it at the start.
struct NodeFile {
  FleetSource& source;
  cluster::FileWatch& watch;
  fleet::ReadConfigurationPtr start;
};

std::set<cluster::NodeRole> roles_of(const std::vector<std::string>& names) {
  std::set<cluster::NodeRole> roles;
  for (const std::string& name : names) {
    const auto role = cluster::parse_role(name);
    if (!role)
      throw UsageError("--roles: unknown role '" + name +
                       "' (known: camera, vision, stream, generate, gateway)");
    roles.insert(*role);
  }
  using cluster::NodeRole;
  if (roles.contains(NodeRole::cache))
    throw UsageError("--roles: '" + std::string(cluster::name_of(NodeRole::cache)) +
                     "' has nothing to do yet");
  return roles;
}

/// Of the model, what a node of these roles computes with; nothing: it reads cameras alone.
std::optional<engine::Halves> halves_of(const std::set<cluster::NodeRole>& roles) {
  using cluster::NodeRole;
  const bool encodes = roles.contains(NodeRole::vision);
  if (!roles.contains(NodeRole::stream) && !roles.contains(NodeRole::generate))
    return encodes ? std::optional(engine::Halves::tower) : std::nullopt;
  return encodes ? engine::Halves::both : engine::Halves::language;
}

/// Another device for answers is for nodes that prefill and generate: where one is other nodes', a second
/// model would have nothing to do.
config::EngineSettings engine_of(config::EngineSettings settings, const std::set<cluster::NodeRole>& roles) {
  using cluster::NodeRole;
  if (!roles.contains(NodeRole::stream) || !roles.contains(NodeRole::generate))
    settings.decode_device.clear();
  return settings;
}

/// The actors of a node; null where it has no such role.
struct NodeParts {
  fleet::node_actor node = {};
  actors::supervisor_actor supervisor = {};
  fleet::dock_actor dock = {};
  fleet::maker_actor maker = {};
  fleet::gateway_actor gateway = {};
};

/// Hands over what the node has, as far as there are others, and lets all of it end. Returns the exit code.
int end_node(caf::actor_system& system, const NodeParts& parts, base::Duration grace, bool was_expelled,
             Announcer& announcer) {
  const auto& [node, supervisor, dock, maker, gateway] = parts;
  int code = was_expelled ? kFailed : kDone;
  // One that goes before its end is waited for would be waited for, too.
  caf::scoped_actor self{system};
  if (!was_expelled)
    self->request(node, supervisor ? grace / kDrainShare : grace, fleet::drain_atom_v)
        .receive([](bool) {},
                 [&, reads = bool{supervisor}](const caf::error&) {
                   announcer.warn(reads ? "some cameras were not handed over in time"
                                        : "some streams were not full elsewhere in time");
                 });
  if (supervisor) {
    caf::anon_send(supervisor, actors::stop_atom_v);
    const actors::DrainReport report = wait_for_end(system, supervisor);
    for (const std::string& failure : report.failures) announcer.error(failure);
    if (!report.failures.empty()) code = kFailed;
  }
  self->monitor(node);
  self->send(node, actors::stop_atom_v);
  self->receive([](const caf::down_msg&) {},
                caf::after(kLeavePatience) >>
                    [&] {
                      // Nothing of what it does is left to wait for.
                      announcer.warn("the registry does not let this node go: its lease ends by itself");
                      self->send_exit(node, caf::exit_reason::kill);
                    });
  if (dock) self->send(dock, actors::stop_atom_v);
  if (maker) self->send(maker, actors::stop_atom_v);
  if (gateway) self->send(gateway, actors::stop_atom_v);
  return code;
}

/// What the node begins with, once it is there. Throws.
fleet::ReadConfigurationPtr read_start(FleetSource& source) {
  const std::string own = source.text();
  if (config::is_in_registry(own)) {
    // What is wrong with it would be so, too, when the rest has come.
    config::parse(own, source.file(), config::process_environment(), {}, config::Unset::problem,
                  config::Secrets::kept, config::Holds::own);
    const config::ClusterSettings complete = cluster_of(own, source.file());
    const auto say = [](const std::string& line) { std::cerr << "vigil: " << line << '\n'; };
    FleetRegistry registry(complete);
    wait_for_configuration(registry, source, say);
  }
  FleetText text = fleet_text(source.text(), source.file());
  if (!text.problems.empty()) throw std::runtime_error(text.problems);
  return std::move(text.read);
}

/// Opens a camera's video; of one whose secrets are not there, that is why.
std::unique_ptr<media::VideoReader> open_video(const std::string& url, const media::ReadOptions& options) {
  if (config::is_without_secrets(url)) throw media::Error(options.shown_name);
  return media::VideoReader::open(url, options);
}

int run_node(const NodeFile& file, const std::set<cluster::NodeRole>& roles, const std::string& name,
             Ending& ending, spdlog::logger& logger, Announcer& announcer) {
  using cluster::NodeRole;
  const config::Settings& settings = *file.start->settings;
  const config::ClusterSettings& own = settings.cluster;
  const bool reads = roles.contains(NodeRole::camera);
  const std::optional<engine::Halves> halves = halves_of(roles);
  const bool keeps = roles.contains(NodeRole::gateway);
  const cluster::SystemClock clock;
  // A gateway needs none.
  const auto folder = reads || halves ? model::ModelFolder::open(settings.model) : nullptr;
  actors::Metrics metrics(actors::Metrics::Options{.cameras = settings.metrics.cameras});
  metrics.build(kVersion, kCommit);
  actors::StatusBoard board(clock);

  cluster::SystemConfig system_config;
  system_config.add_message_types<caf::id_block::vigil>();
  system_config.add_message_types<caf::id_block::vigil_fleet>();
  cluster::use_peers(system_config);
  const auto log_warning = [&logger](const std::string& line) { logger.warn("{}", line); };
  cluster::PeerSockets::Options peer_options;
  const cluster::PeerAddress control = cluster::told_address(address_of(own.listen), own.advertise);
  if (!own.tls_dir.empty())
    peer_options.certificates =
        std::make_shared<cluster::NodeCertificates>(own.tls_dir, log_warning, control.host);
  peer_options.allow_plain_text = own.allow_plain_text;
  peer_options.log = log_warning;
  cluster::PeerSockets sockets(peer_options);
  caf::actor_system system(system_config);
  cluster::PeerSystem peers(system, sockets);

  const actors::status_actor status =
      system.spawn<caf::hidden>(actors::status, actors::StatusDeps{board, metrics, logger});
  board.fleet({.fleet = own.name, .node = name});
  FleetRoutes fleet_routes(system);
  const StateServer server(settings.metrics, metrics, system, status, clock, log_warning, {},
                           fleet_routes.routes());

  PortOwner port_owner;
  const auto keys = own.tls_dir.empty() ? std::nullopt : std::optional(cluster::make_key_pair());
  cluster::SocketBulk bulk({.name = name, .seed = std::random_device{}()},
                           {.endpoint = "tcp://" + own.bulk,
                            .keys = keys,
                            .plain_text_beyond_loopback = own.allow_plain_text,
                            .connections = kMostConnections},
                           port_owner, clock);
  actors::FleetSeries series(metrics);
  cluster::EtcdRegistry etcd(registry_of(
      own, [&logger](const std::string& line) { logger.warn("{}", line); }, name));
  cluster::TimedRegistry registry(etcd, clock, [&series](auto time) { series.registry_answered(time); });

  // Whatever may not be there, before anything runs that would have to be told to end.
  const std::string fingerprint = folder ? model::fingerprint(settings.model) : "";
  const std::string incarnation = random_name();
  std::optional<MadeEvents> made;
  if (reads) made.emplace(settings, keeps, clock, metrics, logger);
  std::optional<KeptEvents> kept;
  if (keeps) kept.emplace(settings, clock, metrics, board, logger);

  const SlowPathWarnings slow_paths([&announcer](const std::string& line) { announcer.warn(line); });
  const actors::FrameShape shape = folder ? frame_shape(*folder) : actors::FrameShape{};
  fleet::dock_actor dock;
  if (halves) {
    dock = system.spawn<caf::detached>(
        fleet::dock,
        fleet::DockDeps{.node = name,
                        .devices = devices_of(engine_of(settings.engine, roles), folder, announcer, *halves),
                        .group = shape.grid.group(),
                        .token_width = folder->config.text.hidden_size,
                        .clock = clock,
                        .metrics = metrics,
                        .board = board,
                        .logger = logger});
  }
  fleet::gateway_actor gateway;
  if (kept) gateway = system.spawn<caf::detached>(fleet::gateway, kept->deps(name, !reads && !halves));
  fleet::maker_actor maker;
  actors::supervisor_actor supervisor;
  if (reads) {
    maker = system.spawn(fleet::maker, fleet::MakerDeps{.node = name,
                                                        .session = incarnation,
                                                        .publisher = made->publisher(),
                                                        .clock = clock,
                                                        .metrics = metrics,
                                                        .board = board,
                                                        .logger = logger});
    supervisor =
        system.spawn(actors::supervisor,
                     actors::PipelineDeps{.cameras = {},
                                          .once = false,
                                          .grace = settings.shutdown_grace,
                                          .name = name,
                                          .retention = settings.alerts.retention,
                                          .model_id = folder->name(),
                                          .open = open_video,
                                          .reach = make_reach,
                                          .dial = dial_limits({}, made->evidence().has_value(), announcer),
                                          .shape = shape,
                                          .devices = {},
                                          .devices_elsewhere = true,
                                          .outbox = made->outbox(),
                                          .publisher = made->publisher(),
                                          .metrics = metrics,
                                          .board = board,
                                          .clock = clock,
                                          .logger = logger,
                                          .seed = std::random_device{}(),
                                          .threads = actors::Threads::own,
                                          .evidence = made->evidence(),
                                          .claims = maker});
  }

  cluster::NodeRecord record;
  record.name = name;
  record.incarnation = incarnation;
  record.roles = roles;
  record.control = control;
  record.bulk = cluster::told_address(address_of(own.bulk), own.advertise);
  if (keys) record.bulk_key = keys->public_key;
  record.version = kVersion;
  record.commit = kCommit;
  record.protocol = kProtocol;
  record.model = fingerprint;
  record.weight = own.weight;
  record.cameras = own.max_cameras;
  record.streams = own.max_streams;

  const fleet::fetcher_actor fetcher = system.spawn<caf::detached>(
      fleet::fetcher, fleet::FetcherDeps{.node = name,
                                         .dir = reads && settings.evidence.enabled ? settings.evidence.dir
                                                                                   : std::filesystem::path(),
                                         .bulk = &bulk,
                                         .clock = clock,
                                         .logger = logger});
  ReloadNews news(metrics, logger);
  // A node may be refused as soon as it is there, and ends as any other one does, with a status that says so.
  std::promise<void> ended;
  std::optional<Ending::Stopping> stopping;
  stopping.emplace(ending, [&ended, asked = std::make_shared<std::once_flag>()] {
    std::call_once(*asked, [&ended] { ended.set_value(); });
  });
  std::atomic<bool> was_expelled{false};
  const auto offered = [&file](std::string text) {
    file.source.offer(std::move(text));
    file.watch.poke();
  };
  const fleet::node_actor node = system.spawn(
      fleet::node, fleet::NodeDeps{.fleet = own.name,
                                   .record = record,
                                   .lease = own.lease,
                                   .seeds = seeds_of(own),
                                   .registry = registry,
                                   .ways = ways_of(peers, sockets, bulk),
                                   .configuration = file.start,
                                   .resolve =
                                       [folder = std::filesystem::absolute(file.source.file()).parent_path()](
                                           config::CameraSettings camera) {
                                         return config::with_secrets(std::move(camera),
                                                                     config::process_environment(), folder);
                                       },
                                   .offered = own.configuration == config::ConfigurationFrom::registry
                                                  ? offered
                                                  : std::function<void(std::string)>(),
                                   .applied =
                                       [&](const config::Settings& changed, const std::string& line) {
                                         logger.set_level(log_level(changed.log));
                                         news.applied(line);
                                       },
                                   .supervisor = supervisor,
                                   .dock = dock,
                                   .maker = maker,
                                   .gateway = gateway,
                                   .group = shape.grid.group(),
                                   .clock = clock,
                                   .metrics = metrics,
                                   .board = board,
                                   .logger = logger,
                                   .series = &series,
                                   .fetcher = fetcher,
                                   .expelled =
                                       [&](const std::string& why) {
                                         announcer.error(why);
                                         was_expelled = true;
                                         ending.ask();
                                       }});
  port_owner.set(node);
  fleet_routes.set(system.spawn<caf::detached>(
                       fleet::fleet_status, fleet::FleetStatusDeps{own.name, node, registry, clock, logger}),
                   fetcher);
  try {
    peers.publish(address_of(own.listen), caf::actor_cast<caf::strong_actor_ptr>(node), {});
  } catch (const std::exception& error) {
    // What runs has to be told to end.
    announcer.error(error.what());
    was_expelled = true;
  }
  if (!was_expelled) {
    std::string what;
    for (const cluster::NodeRole role : roles)
      what += (what.empty() ? "" : ",") + std::string(cluster::name_of(role));
    announcer.info("node " + name + " of fleet " + own.name + ": " + what + "; nodes on " + own.listen +
                   (server.url().empty() ? "" : ", metrics on " + server.url()));
    const FleetFile follow(
        file.source, file.watch, settings, news,
        [&node](fleet::ReadConfigurationPtr read) { caf::anon_send(node, std::move(read)); });
    ended.get_future().wait();
  }
  stopping.reset();
  const int code = end_node(system, {node, supervisor, dock, maker, gateway}, settings.shutdown_grace,
                            was_expelled, announcer);
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
  // Before it is read, so that no change is missed while the model loads.
  cluster::FileWatch watch(arguments.config);
  const Signals handler(
      [&] {
        const auto meaning = requests.take();
        if (meaning == cluster::EndRequests::Meaning::quit) quit();
        if (meaning == cluster::EndRequests::Meaning::nothing) return;
        ending.ask();
      },
      [&watch] { watch.poke(); });
  FleetSource source(arguments.config);
  fleet::ReadConfigurationPtr start;
  try {
    start = read_start(source);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
  const config::Settings& settings = *start->settings;
  const auto logger = make_logger(settings.log);
  Announcer announcer(*logger);
  try {
    need_all(settings.cluster, arguments.config);
    // Before anything runs that would have to be told to end.
    static_cast<void>(address_of(settings.cluster.listen));
    static_cast<void>(address_of(settings.cluster.bulk));
    static_cast<void>(seeds_of(settings.cluster));
    std::string name = !arguments.name.empty() ? arguments.name : settings.name;
    if (name.empty()) name = cluster::host_name();
    return run_node({source, watch, start}, roles, name, ending, *logger, announcer);
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
      ->add_option("--roles", arguments->roles,
                   "what it does, with commas: camera, vision, stream, generate, gateway")
      ->required()
      ->delimiter(',')
      ->type_name("ROLE");
  command
      ->add_option("--name", arguments->name,
                   "this node's name, instead of the configuration's or the host's")
      ->check([](const std::string& name) {
        return config::is_name(name) ? std::string() : "expected " + std::string(config::kName.expected);
      })
      ->type_name("NAME");
  command->footer(
      "The first SIGTERM or SIGINT hands its cameras over to other nodes, finishes what is under way within "
      "the configuration's grace period, and ends.\n"
      "Example: vigil node --roles camera,vision,stream,generate --config fleet.yaml\n"
      "The vision tower on nodes of its own: --roles vision on some, --roles stream,generate on others; "
      "explanations, too: --roles stream, --roles generate.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace vigil::services
