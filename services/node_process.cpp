#include "services/node_process.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "config/file/load.h"
#include "config/file/references.h"
#include "fleet/dock/dock_actor.h"
#include "fleet/events/maker_actor.h"
#include "fleet/evidence/fetcher_actor.h"
#include "fleet/node/engine_need.h"
#include "fleet/node/node_actor.h"
#include "fleet/node/started_actors.h"
#include "fleet/past/past_actor.h"
#include "fleet/status/fleet_status_actor.h"
#include "services/ask_parts.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/node_ground.h"
#include "services/node_need.h"
#include "services/node_ways.h"
#include "services/protocol.h"
#include "services/service_parts.h"

namespace vigil::services {
namespace {

/// How long a node that reads cameras and is asked to end hands them over, of its grace: the rest is for what
/// is under way. One that only computes has nothing else to do.
constexpr int kDrainShare = 2;
/// How long the registry may take to let it go.
constexpr std::chrono::seconds kLeavePatience{2};

// --- What is started: each ends when it is told to ---

/// The actors of a node; null where it has no such role.
struct NodeParts {
  fleet::dock_actor dock = {};
  fleet::gateway_actor gateway = {};
  fleet::maker_actor maker = {};
  actors::supervisor_actor supervisor = {};
  fleet::fetcher_actor fetcher = {};
  fleet::past_actor past = {};
  fleet::node_actor node = {};
  /// Null: nobody asks about the past here.
  std::unique_ptr<TakingAsks> asks = nullptr;
};

fleet::dock_actor start_dock(const NodeIdentity& self, NodeGround& on, const actors::CacheAccess& cache,
                             Announcer& announcer) {
  return on.systems.system.spawn<caf::detached>(
      fleet::dock,
      fleet::DockDeps{.node = self.start.name,
                      .devices = devices_of(fleet::engine_of(self.settings.engine, self.start.roles),
                                            on.folder, announcer, *self.halves),
                      .group = on.shape.grid.group(),
                      .token_width = on.folder->config.text.hidden_size,
                      .clock = on.clock,
                      .metrics = on.shown.metrics,
                      .board = on.shown.board,
                      .logger = on.logger,
                      .cache = cache,
                      .seed = std::random_device{}()});
}

/// For nodes that remember, and for gateways, at which people ask.
fleet::past_actor start_past(const NodeIdentity& self, NodeGround& on, const actors::cache_actor& cache) {
  return on.systems.system.spawn(fleet::past, fleet::PastDeps{.fleet = self.cluster.name,
                                                              .node = self.start.name,
                                                              .incarnation = self.incarnation,
                                                              .cache = cache,
                                                              .has_disk = !self.settings.memory.dir.empty(),
                                                              .is_gateway = self.keeps,
                                                              .registry = on.registry.timed,
                                                              .clock = on.clock,
                                                              .logger = on.logger,
                                                              .metrics = on.shown.metrics});
}

fleet::maker_actor start_maker(const NodeIdentity& self, NodeGround& on) {
  return on.systems.system.spawn(fleet::maker, fleet::MakerDeps{.node = self.start.name,
                                                                .session = self.incarnation,
                                                                .publisher = on.made->publisher(),
                                                                .clock = on.clock,
                                                                .metrics = on.shown.metrics,
                                                                .board = on.shown.board,
                                                                .logger = on.logger});
}

/// Opens a camera's video; of one whose secrets are not there, that is why.
std::unique_ptr<media::VideoReader> open_video(const std::string& url, const media::ReadOptions& options) {
  if (config::is_without_secrets(url)) throw media::Error(options.shown_name);
  return media::VideoReader::open(url, options);
}

actors::supervisor_actor start_supervisor(const NodeIdentity& self, NodeGround& on,
                                          const fleet::maker_actor& maker, Announcer& announcer) {
  MadeEvents& made = *on.made;
  return on.systems.system.spawn(
      actors::supervisor,
      actors::PipelineDeps{.cameras = {},
                           .once = false,
                           .grace = self.settings.shutdown_grace,
                           .name = self.start.name,
                           .retention = self.settings.alerts.retention,
                           .model_id = on.folder->name(),
                           .open = open_video,
                           .reach = make_reach,
                           .dial = dial_limits({}, made.evidence().has_value(), announcer),
                           .shape = on.shape,
                           .devices = {},
                           .devices_elsewhere = true,
                           .outbox = made.outbox(),
                           .publisher = made.publisher(),
                           .metrics = on.shown.metrics,
                           .board = on.shown.board,
                           .clock = on.clock,
                           .logger = on.logger,
                           .seed = std::random_device{}(),
                           .threads = actors::Threads::own,
                           .evidence = made.evidence(),
                           .remembers = self.settings.memory.enabled,
                           .claims = maker});
}

fleet::fetcher_actor start_fetcher(const NodeIdentity& self, NodeGround& on) {
  const bool has_evidence = self.reads && self.settings.evidence.enabled;
  return on.systems.system.spawn<caf::detached>(
      fleet::fetcher,
      fleet::FetcherDeps{.node = self.start.name,
                         .dir = has_evidence ? self.settings.evidence.dir : std::filesystem::path(),
                         .bulk = &on.bulk.port,
                         .clock = on.clock,
                         .logger = on.logger});
}

cluster::NodeRecord record_of(const NodeIdentity& self, const NodeGround& on) {
  cluster::NodeRecord record;
  record.name = self.start.name;
  record.incarnation = self.incarnation;
  record.roles = self.start.roles;
  record.control = self.control;
  record.bulk = self.bulk;
  if (on.bulk.keys) record.bulk_key = on.bulk.keys->public_key;
  record.version = kVersion;
  record.commit = kCommit;
  record.protocol = kProtocol;
  record.model = on.fingerprint;
  record.weight = self.cluster.weight;
  record.cameras = self.cluster.max_cameras;
  record.streams = self.cluster.max_streams;
  return record;
}

/// Has a text of the registry's read; null: the node's own file has all.
std::function<void(std::string)> offers_to(const NodeStart& start) {
  if (start.read->settings->cluster.configuration != config::ConfigurationFrom::registry) return {};
  return [&start](std::string text) {
    start.source.offer(std::move(text));
    start.watch.poke();
  };
}

fleet::node_actor start_node(const NodeIdentity& self, NodeGround& on, const NodeParts& parts,
                             const actors::cache_actor& cache,
                             std::function<void(const std::string&)> expelled) {
  const std::filesystem::path folder = std::filesystem::absolute(self.start.source.file()).parent_path();
  return on.systems.system.spawn(
      fleet::node, fleet::NodeDeps{.fleet = self.cluster.name,
                                   .record = record_of(self, on),
                                   .lease = self.cluster.lease,
                                   .seeds = self.seeds,
                                   .registry = on.registry.timed,
                                   .ways = ways_of(on.systems.peers, on.systems.sockets, on.bulk.port),
                                   .configuration = self.start.read,
                                   .resolve =
                                       [folder](config::CameraSettings camera) {
                                         return config::with_secrets(std::move(camera),
                                                                     config::process_environment(), folder);
                                       },
                                   .offered = offers_to(self.start),
                                   .applied =
                                       [&on](const config::Settings& changed, const std::string& line) {
                                         on.logger.set_level(log_level(changed.log));
                                         on.news.applied(line);
                                       },
                                   .supervisor = parts.supervisor,
                                   .dock = parts.dock,
                                   .maker = parts.maker,
                                   .gateway = parts.gateway,
                                   .group = on.shape.grid.group(),
                                   .clock = on.clock,
                                   .metrics = on.shown.metrics,
                                   .board = on.shown.board,
                                   .logger = on.logger,
                                   .series = &on.registry.series,
                                   .fetcher = parts.fetcher,
                                   .clips = on.made ? on.made->clips() : nullptr,
                                   .past = parts.past,
                                   .remembers = self.remembers,
                                   .cache = cache,
                                   .expelled = std::move(expelled)});
}

// --- What is awaited: the wish that it ends, and its end ---

/// A node may be refused as soon as it is there, and ends as any other one does, with a status that says so.
class EndWish {
 public:
  EndWish(Ending& ending, Announcer& announcer) : ending_(ending), announcer_(announcer) {
    stopping_.emplace(ending, [this] { std::call_once(asked_, [this] { wished_.set_value(); }); });
  }

  /// On any thread.
  void expel(const std::string& why) {
    announcer_.error(why);
    was_expelled_ = true;
    ending_.ask();
  }
  bool was_expelled() const { return was_expelled_; }

  void wait() { wished_.get_future().wait(); }
  /// From now on, who asks for the end does not wait for what runs.
  void is_followed() { stopping_.reset(); }

 private:
  Ending& ending_;
  Announcer& announcer_;
  std::atomic<bool> was_expelled_ = false;
  std::once_flag asked_;
  std::promise<void> wished_;
  std::optional<Ending::Stopping> stopping_;
};

/// Lets others in. Whether that works.
bool open_to_peers(const NodeIdentity& self, NodeGround& on, const NodeParts& parts, Announcer& announcer) {
  try {
    on.systems.peers.publish(address_of(self.cluster.listen),
                             caf::actor_cast<caf::strong_actor_ptr>(parts.node), {});
    return true;
  } catch (const std::exception& error) {
    // What runs has to be told to end.
    announcer.error(std::string("cluster.listen: ") + error.what());
    return false;
  }
}

/// Follows the configuration until somebody wants the node to end.
void serve(const NodeIdentity& self, NodeGround& on, const NodeParts& parts, EndWish& wish,
           Announcer& announcer) {
  const std::string url = on.pages.server.url();
  std::string line = "node " + self.start.name + " of fleet " + self.cluster.name + ": " +
                     cluster::text_of(self.start.roles) + "; nodes on " + self.cluster.listen;
  if (!url.empty()) line += ", metrics on " + url;
  if (parts.asks) line += ", asked on " + self.settings.asks.bind;
  announcer.info(line);
  const FleetFile follow(
      self.start.source, self.start.watch, self.settings, on.news,
      [node = parts.node](fleet::ReadConfigurationPtr read) { caf::anon_send(node, std::move(read)); });
  wish.wait();
}

/// Has it hand over what it has, as far as there are others.
void hand_over(caf::scoped_actor& self, const NodeParts& parts, base::Duration grace, Announcer& announcer) {
  const bool reads{parts.supervisor};
  self->request(parts.node, reads ? grace / kDrainShare : grace, fleet::drain_atom_v)
      .receive([](bool) {},
               [&](const caf::error&) {
                 announcer.warn(reads ? "some cameras were not handed over in time"
                                      : "some streams were not full elsewhere in time");
               });
}

/// Waits for the end of its cameras. Whether all went well.
bool end_cameras(caf::actor_system& system, const actors::supervisor_actor& supervisor,
                 Announcer& announcer) {
  caf::anon_send(supervisor, actors::stop_atom_v);
  const actors::DrainReport report = wait_for_end(system, supervisor);
  for (const std::string& failure : report.failures) announcer.error(failure);
  return report.failures.empty();
}

/// All but the node itself.
NodeParts start_parts(const NodeIdentity& self, NodeGround& on, const actors::CacheAccess& cache,
                      fleet::StartedActors& started, Announcer& announcer) {
  caf::actor_system& system = on.systems.system;
  NodeParts parts;
  if (self.halves) parts.dock = started.start("dock", [&] { return start_dock(self, on, cache, announcer); });
  if (on.kept)
    parts.gateway = started.start("gateway", [&] {
      return system.spawn<caf::detached>(fleet::gateway,
                                         on.kept->deps(self.start.name, !self.reads && !self.halves));
    });
  if (self.reads) {
    parts.maker = started.start("maker", [&] { return start_maker(self, on); });
    parts.supervisor = started.start(
        "supervisor", [&] { return start_supervisor(self, on, parts.maker, announcer); },
        // It ends once somebody has heard how.
        [&](const actors::supervisor_actor& actor) { end_cameras(system, actor, announcer); });
  }
  parts.fetcher = started.start("fetcher", [&] { return start_fetcher(self, on); });
  if (self.remembers || (self.keeps && self.settings.memory.enabled))
    parts.past = started.start("past", [&] { return start_past(self, on, cache.cache); });
  return parts;
}

/// Tells of the node those that were there before it.
void introduce(const NodeIdentity& self, NodeGround& on, fleet::StartedActors& started,
               const NodeParts& parts) {
  on.bulk.owner.set(parts.node);
  const auto status = started.start("fleet status", [&] {
    return on.systems.system.spawn<caf::detached>(
        fleet::fleet_status,
        fleet::FleetStatusDeps{self.cluster.name, parts.node, on.registry.timed, on.clock, on.logger});
  });
  on.pages.fleet.set(status, parts.fetcher);
}

/// All of it; nothing: it could not be, which was said, and what ran before that was told to end.
std::optional<NodeParts> start_all(const NodeIdentity& self, NodeGround& on, const actors::CacheAccess& cache,
                                   EndWish& wish, Announcer& announcer) {
  fleet::StartedActors started(on.systems.system);
  try {
    NodeParts parts = start_parts(self, on, cache, started, announcer);
    parts.node = started.start("node", [&] {
      return start_node(self, on, parts, cache.cache, [&wish](const std::string& why) { wish.expel(why); });
    });
    introduce(self, on, started, parts);
    if (self.keeps && parts.past)
      parts.asks = std::make_unique<TakingAsks>(self.settings.asks, parts.past, on.systems.system, on.clock,
                                                on.logger, on.shown.metrics);
    return parts;
  } catch (const std::exception& error) {
    announcer.error(error.what());
    started.end(self.settings.shutdown_grace);
    return std::nullopt;
  }
}

/// Waits until the registry has let it go.
void leave_fleet(caf::scoped_actor& self, const fleet::node_actor& node, Announcer& announcer) {
  self->monitor(node);
  self->send(node, actors::stop_atom_v);
  self->receive([](const caf::down_msg&) {},
                caf::after(kLeavePatience) >>
                    [&] {
                      // Nothing of what it does is left to wait for.
                      announcer.warn("the registry does not let this node go: its lease ends by itself");
                      self->send_exit(node, caf::exit_reason::kill);
                    });
}

/// Lets all of it end. Whether it went well.
bool end_node(caf::actor_system& system, const NodeParts& parts, base::Duration grace, bool hands_over,
              Announcer& announcer) {
  // One that goes before its end is waited for would be waited for, too.
  caf::scoped_actor self{system};
  if (hands_over) hand_over(self, parts, grace, announcer);
  const bool is_well = !parts.supervisor || end_cameras(system, parts.supervisor, announcer);
  leave_fleet(self, parts.node, announcer);
  if (parts.dock) self->send(parts.dock, actors::stop_atom_v);
  if (parts.maker) self->send(parts.maker, actors::stop_atom_v);
  if (parts.gateway) self->send(parts.gateway, actors::stop_atom_v);
  return is_well;
}

}  // namespace

int run_node(const NodeStart& start, Ending& ending, spdlog::logger& logger, Announcer& announcer) {
  const NodeIdentity self(start);
  NodeGround ground(self, logger, announcer);
  EndWish wish(ending, announcer);
  std::optional<MemoryParts::Running> remembering;
  if (ground.memory) remembering.emplace(*ground.memory, ground.systems.system);
  std::optional<NodeParts> started =
      start_all(self, ground, remembering ? remembering->access() : actors::CacheAccess(), wish, announcer);
  // CAF would wait for ever for an actor that has not ended.
  if (!started) leave(logger);
  NodeParts& parts = *started;
  const bool is_open = open_to_peers(self, ground, parts, announcer);
  if (is_open && !wish.was_expelled()) serve(self, ground, parts, wish, announcer);
  wish.is_followed();
  const bool is_member = is_open && !wish.was_expelled();
  const bool is_well =
      end_node(ground.systems.system, parts, self.settings.shutdown_grace, is_member, announcer);
  parts.asks.reset();
  // It waits for what devices give it last.
  remembering.reset();
  if (end_within(ground.systems.system, kBesidesGrace)) return is_well && is_member ? kDone : kFailed;
  announcer.error("some of what computes did not come to an end and was left");
  leave(logger);
}

}  // namespace vigil::services
