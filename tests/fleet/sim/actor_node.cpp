#include "tests/fleet/sim/actor_node.h"

#include <sstream>
#include <utility>

#include <caf/scheduler/test_coordinator.hpp>

#include "fleet/events/maker_actor.h"
#include "fleet/events/shipping_publisher.h"
#include "fleet/link/link_actor.h"
#include "fleet/messages/types.h"
#include "tests/actors/scripted_language.h"
#include "tests/fleet/sim/stand_ins.h"

namespace vigil::fleet::sim {
namespace {

using namespace std::chrono_literals;
using cluster::Membership;
using cluster::NodeRole;

constexpr std::chrono::seconds kDraining{20};
/// Of a camera that may wait for credit on a link: its patches are as many as its gate gives it.
constexpr std::size_t kMostFrames = 64;
/// Of an end that nobody waits for: time limits that may pass until all actors are gone.
constexpr int kMostEnding = 20'000;

/// Says who a system is before anything of it is made; as cluster/peers does.
class Identity final : public caf::actor_system::module {
 public:
  Identity(caf::actor_system& system, std::uint32_t process, std::uint8_t host) {
    caf::node_id::default_data::host_id_type bytes{};
    bytes.fill(host);
    const_cast<caf::node_id&>(system.node()) = caf::make_node_id(process, bytes);
  }
  void start() override {}
  void stop() override {}
  void init(caf::actor_system_config&) override {}
  id_t id() const override { return openssl_manager; }
  void* subtype_ptr() override { return this; }
};

class Config : public caf::actor_system_config {
 public:
  explicit Config(const Host& host) {
    set("scheduler.policy", caf::atom("testing"));
    fleet::know_messages(*this);
    module_factories.push_back([process = static_cast<std::uint32_t>(host.life + 1),
                                number = static_cast<std::uint8_t>(host.id + 1)](
                                   caf::actor_system& system) -> caf::actor_system::module* {
      return new Identity(system, process, number);
    });
  }
};

/// The host's clock, and time that passes for what is left of a dead node alone.
class NodeClock final : public base::Clock {
 public:
  explicit NodeClock(const Host& host) : host_(host) {}
  TimePoint now() const override { return host_.clock.now() + beyond; }
  WallTime wall() const override { return host_.clock.wall(); }

  base::Duration beyond{0};

 private:
  const Host& host_;
};

class Owner final : public cluster::BulkOwner {
 public:
  void received(const std::string& peer, cluster::BulkReceived received) override {
    if (node) caf::anon_send(node, std::make_shared<BulkArrival>(BulkArrival{peer, std::move(received)}));
  }
  void room(const std::string& peer) override { tell({peer, BulkNews::What::room}); }
  void opened(const std::string& peer, cluster::BulkDirection direction,
              std::uint64_t /*incarnation*/) override {
    tell({peer, BulkNews::What::opened, direction});
  }
  void reset(const std::string& peer, const cluster::BulkReset& reset) override {
    tell({peer, BulkNews::What::ended, reset.direction, std::string(name_of(reset.why))});
  }
  void tell(const BulkNews& news) {
    if (node) caf::anon_send(node, news);
  }

  node_actor node;
};

/// What an actor has, as long as it runs. Read by the only thread, between its turns.
template <class State>
State* state_of(const auto& handle) {
  if (!handle) return nullptr;
  auto* const actor = caf::actor_cast<caf::abstract_actor*>(handle);
  if (actor->getf(caf::abstract_actor::is_cleaned_up_flag)) return nullptr;
  using Handle = std::decay_t<decltype(handle)>;
  return &static_cast<typename Handle::template stateful_pointer<State>>(actor)->state;
}

/// What a mistake makes of what a gateway answers makers.
Wire::Meddle meddling(const Mistakes& mistakes) {
  if (!mistakes.no_answer_to_a_new_owner && !mistakes.books_end_too_far) return nullptr;
  return [&mistakes](caf::message& message) {
    if (!message.match_elements<GatewayTalk>()) return;
    GatewayTalk& talk = message.get_mutable_as<GatewayTalk>(0);
    if (mistakes.no_answer_to_a_new_owner)
      std::erase_if(talk.claims, [](const ClaimAnswer& claim) { return claim.others > 0; });
    if (mistakes.books_end_too_far)
      for (ClaimAnswer& claim : talk.claims)
        for (ShippedEvent& last : claim.last)
          if (claim.staged.empty()) ++last.sequence;
  };
}

}  // namespace

struct ActorNode::Parts {
  Parts(ActorCommons& all, Host& its_host, const Disks& disks)
      : commons(all),
        host(its_host),
        clock(its_host),
        kept(disks.kept),
        outbox(disks.made.open()),
        encoder([this](const std::string& camera) { taken(camera); }),
        registry(make_registry_client(all.registry, its_host)),
        config(its_host),
        system(config),
        wire(all.network, its_host, system, meddling(all.mistakes)),
        bulk({.name = its_host.name, .seed = all.world.random.next()}, "tcp://" + its_host.name + ":1", "",
             owner, all.bulk) {}

  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  }

  void taken(const std::string& camera) {
    const dock_state* const state = state_of<dock_state>(dock);
    const DockBook::Guest* const guest = state == nullptr ? nullptr : state->book.find(camera);
    if (guest != nullptr && host.up && !host.dying)
      commons.audit.taken(host, camera, guest->fence, guest->passage.owner, guest->generation, ++patches);
  }

  /// With the halves of the model that it has.
  actors::DeviceSlot device(bool has_tower, bool has_language) {
    actors::DeviceSlot slot = actors::testing::slot(encoder, language);
    if (!has_tower) slot.engine.encoder = nullptr;
    if (!has_language) {
      slot.engine.desk = nullptr;
      slot.engine.questions = nullptr;
    }
    return slot;
  }

  NodeWays ways() {
    return {.find =
                [this](const cluster::PeerAddress& address, auto done) {
                  for (const auto& each : commons.world.hosts()) {
                    if (each->name != address.host) continue;
                    wire.find(*each, [done = std::move(done)](auto found) {
                      if (auto* reason = std::get_if<std::string>(&found)) return done(std::move(*reason));
                      done(caf::actor_cast<greeter_actor>(std::get<caf::strong_actor_ptr>(found)));
                    });
                    return;
                  }
                },
            .resolve = [](const cluster::PeerAddress& address,
                          auto done) { done(std::vector<cluster::PeerAddress>{address}); },
            .bulk = &bulk};
  }

  ActorCommons& commons;
  Host& host;
  NodeClock clock;
  Disk& kept;
  /// Of a node that makes events.
  std::unique_ptr<actors::Outbox> outbox;
  // Nobody sleeps here.
  ShippingPublisher publisher{{.patience = base::Duration(0)}};
  Encoder encoder;
  actors::testing::ScriptedLanguage language;
  actors::Metrics metrics;
  actors::StatusBoard board{clock};
  spdlog::logger logger{"sim", sink_of(commons.world, host)};
  std::unique_ptr<cluster::Registry> registry;
  Owner owner;
  Config config;
  caf::actor_system system;
  Wire wire;
  GatewayDeps gateway_deps() {
    return {.node = host.name,
            .open =
                [this](bool anew) {
                  if (kept.fails()) throw actors::OutboxError("the disk of " + host.name + " fails");
                  if (anew) kept.replace();
                  return kept.open();
                },
            .topics = [this](const actors::Outbox& opened) -> std::unique_ptr<actors::Publisher> {
              return std::make_unique<Topics>(commons, host, opened);
            },
            .token =
                [this](const std::string& /*after*/) {
                  const std::string number = std::to_string(++commons.tokens);
                  return std::string(12 - number.size(), '0') + number + host.name;
                },
            .retention = 24h,
            .clock = clock,
            .metrics = metrics,
            .board = board,
            .logger = logger};
  }

  cluster::MemoryBulk bulk;
  dock_actor dock;
  actors::supervisor_actor supervisor;
  maker_actor maker;
  gateway_actor gateway;
  node_actor node;
  std::uint64_t patches = 0;
  std::string expelled;
};

ActorNode::ActorNode(ActorCommons& commons, Host& host, const Disks& disks, const std::set<NodeRole>& roles,
                     const std::string& incarnation)
    : commons_(commons), host_(host), parts_(std::make_unique<Parts>(commons, host, disks)) {
  Parts& own = *parts_;
  own.scheduler().clock().current_time = own.clock.now();
  if (const bool has_tower = roles.contains(NodeRole::vision),
      has_language = roles.contains(NodeRole::stream) || roles.contains(NodeRole::generate);
      has_tower || has_language) {
    own.dock = own.system.spawn(dock, DockDeps{.node = host.name,
                                               .devices = {own.device(has_tower, has_language)},
                                               .group = 2,
                                               .token_width = 1,
                                               .clock = own.clock,
                                               .metrics = own.metrics,
                                               .board = own.board,
                                               .logger = own.logger,
                                               .threads = actors::Threads::scheduled});
  }
  if (roles.contains(NodeRole::gateway)) own.gateway = own.system.spawn(gateway, own.gateway_deps());
  if (roles.contains(NodeRole::camera)) {
    own.maker = own.system.spawn(maker, MakerDeps{.node = host.name,
                                                  .session = incarnation,
                                                  .publisher = own.publisher,
                                                  .clock = own.clock,
                                                  .metrics = own.metrics,
                                                  .board = own.board,
                                                  .logger = own.logger});
    own.supervisor = own.system.spawn(
        actors::supervisor,
        actors::PipelineDeps{
            .cameras = {},
            .once = false,
            .grace = 10s,
            .name = host.name,
            .retention = 24h,
            .model_id = "fake",
            .open = [stream = commons.cameras.front().stream](const std::string&, const media::ReadOptions&)
                -> std::unique_ptr<media::VideoReader> {
              return std::make_unique<EndlessReader>(
                  stream.fps, std::chrono::duration_cast<std::chrono::seconds>(stream.window.stride));
            },
            .shape = {2, {}},
            .devices = {},
            .devices_elsewhere = true,
            .outbox = *own.outbox,
            .publisher = own.publisher,
            .metrics = own.metrics,
            .board = own.board,
            .clock = own.clock,
            .logger = own.logger,
            .seed = commons.world.random.next(),
            .threads = actors::Threads::scheduled,
            .claims = own.maker});
  }
  const auto settings = std::make_shared<config::Settings>();
  settings->cameras = commons.cameras;
  const auto configuration =
      std::make_shared<const ReadConfiguration>(ReadConfiguration{"c0ffee", settings, ""});
  cluster::NodeRecord record;
  record.name = host.name;
  record.incarnation = incarnation;
  record.roles = roles;
  record.state = cluster::NodeState::ready;
  record.control = {host.name, 2};
  record.bulk = {host.name, 1};
  record.version = "1";
  record.model = "model";
  own.node =
      own.system.spawn(node, NodeDeps{.fleet = commons.fleet,
                                      .record = record,
                                      .registry = *own.registry,
                                      .ways = own.ways(),
                                      .configuration = configuration,
                                      .resolve = [](config::CameraSettings camera) { return camera; },
                                      .supervisor = own.supervisor,
                                      .dock = own.dock,
                                      .maker = own.maker,
                                      .gateway = own.gateway,
                                      .group = 2,
                                      .clock = own.clock,
                                      .metrics = own.metrics,
                                      .board = own.board,
                                      .logger = own.logger,
                                      .expelled = [&own](const std::string& why) { own.expelled = why; }});
  own.owner.node = own.node;
  own.wire.publish(caf::actor_cast<caf::strong_actor_ptr>(own.node));
  run();
}

ActorNode::~ActorNode() {
  Parts& own = *parts_;
  own.owner.node = node_actor();
  // What stands here for others ends with that.
  own.wire.close();
  caf::scheduler::test_coordinator& scheduler = own.scheduler();
  if (own.supervisor) {
    caf::anon_send(own.supervisor, actors::stop_atom_v);
    // It quits when it has told how it ended.
    own.system.spawn([supervisor = own.supervisor](caf::event_based_actor* self) {
      self->request(supervisor, caf::infinite, actors::wait_atom_v)
          .then([](const actors::DrainReport&) {}, [](const caf::error&) {});
    });
  }
  caf::anon_send_exit(own.node, caf::exit_reason::kill);
  if (own.dock) caf::anon_send(own.dock, actors::stop_atom_v);
  if (own.maker) caf::anon_send(own.maker, actors::stop_atom_v);
  if (own.gateway) caf::anon_send(own.gateway, actors::stop_atom_v);
  commons_.events.forget(host_);
  own.supervisor = actors::supervisor_actor();
  own.maker = maker_actor();
  own.gateway = gateway_actor();
  own.node = node_actor();
  own.dock = dock_actor();
  for (int left = kMostEnding; own.system.registry().running() > 0; --left) {
    if (left == 0) {
      commons_.world.fail("what is left of node " + host_.name + " does not end");
      // It would be waited for without an end.
      static_cast<void>(parts_.release());
      return;
    }
    while (scheduler.try_run_once()) {
    }
    own.clock.beyond += 50ms;
    scheduler.clock().current_time = own.clock.now();
    scheduler.clock().trigger_expired_timeouts();
  }
  scheduler.clock().cancel_all();
  while (scheduler.try_run_once()) {
  }
}

bool ActorNode::run() {
  if (!host_.up || host_.frozen) return false;
  const std::uint64_t before = jobs_;
  caf::scheduler::test_coordinator& scheduler = parts_->scheduler();
  auto& clock = scheduler.clock();
  clock.current_time = parts_->clock.now();
  clock.trigger_expired_timeouts();
  while (!scheduler.jobs.empty() && host_.does(Point::turn)) {
    ++jobs_;
    scheduler.run_once();
  }
  enter_gateway();
  if (host_.dying || clock.schedule().empty()) return jobs_ > before;
  const Micros due =
      commons_.world.now() + host_.clock.lasting(clock.schedule().begin()->first - parts_->clock.now());
  if (!wake_ || due < *wake_) {
    wake_ = due;
    commons_.world.at(due, &host_, [this, due, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired() && wake_ == due) wake_.reset();
    });
  }
  return jobs_ > before;
}

void ActorNode::enter_gateway() {
  const gateway_state* const own = state_of<gateway_state>(parts_->gateway);
  if (own != nullptr && own->desk) {
    commons_.events.enter(host_, *own->desk, *own->outbox);
  } else {
    commons_.events.forget(host_);
  }
}

void ActorNode::drain(std::function<void()> done) {
  parts_->system.spawn([node = parts_->node, done = std::move(done)](caf::event_based_actor* self) {
    const auto leave = [self, node, done] {
      self->send(node, actors::stop_atom_v);
      done();
    };
    self->request(node, kDraining, drain_atom_v)
        .then([leave](bool) { leave(); }, [leave](const caf::error&) { leave(); });
  });
}

void ActorNode::tell() {
  if (!parts_->expelled.empty())
    commons_.world.fail("node " + host_.name + " is expelled: " + parts_->expelled);
  if (const node_state* const own = state_of<node_state>(parts_->node); own != nullptr && own->member) {
    commons_.audit.believes(host_, own->member->record().incarnation,
                            own->member->state() == Membership::member);
  }
  // That may be wrong because time goes on. All else of a node is another only after it has done something.
  if (std::exchange(told_, jobs_) == jobs_) return;
  if (const node_state* const own = state_of<node_state>(parts_->node); own != nullptr) {
    for (const auto& [node, handle] : own->links)
      if (const link_state* const link = state_of<link_state>(handle); link != nullptr && link->desk)
        commons_.audit.bounded("frames of a link", link->desk->waiting(),
                               kMostFrames * commons_.cameras.size());
  }
  if (const dock_state* const own = state_of<dock_state>(parts_->dock); own != nullptr) {
    for (const auto& [camera, guest] : own->book.guests()) {
      commons_.audit.guest(host_, camera, guest.fence, guest.passage.owner);
      const std::pair now(guest.fence, guest.generation);
      if (std::exchange(guests_[camera], now) != now)
        commons_.world.note(Kind::joined, host_.id, -1, guest.fence);
    }
    std::erase_if(guests_, [&](const auto& each) {
      if (own->book.find(each.first) != nullptr) return false;
      commons_.world.note(Kind::left, host_.id, -1, each.second.first);
      return true;
    });
  }
  if (const gateway_state* const own = state_of<gateway_state>(parts_->gateway);
      own != nullptr && own->desk) {
    commons_.events.look(host_);
    commons_.audit.bounded("staged bytes", own->desk->books().staged_bytes(), 64U << 20U);
  }
  if (const maker_state* const own = state_of<maker_state>(parts_->maker); own != nullptr && own->desk)
    commons_.audit.bounded("events of a maker", own->desk->waiting(), 192 + 300);
  // Not cheap, and no short peak is missed.
  if (++tells_ % 64 != 0) return;
  for (const auto& [peer, counters] : parts_->bulk.counters())
    commons_.audit.bounded("bytes on a bulk way", counters.outgoing.most_waiting_bytes, 64U << 20U);
}

std::string ActorNode::describe() const {
  std::string text;
  if (const node_state* const own = state_of<node_state>(parts_->node); own != nullptr && own->member) {
    text += std::string(name_of(own->member->state())) + ", knows";
    for (const cluster::NodeRecord& node : own->desk->known()) text += ' ' + node.name;
    text += ", troubles";
    for (const auto& [name, trouble] : own->desk->troubles()) text += ' ' + name + ": " + trouble + ';';
    text += ", links";
    for (const auto& [to, handle] : own->links) {
      const link_state* const link = state_of<link_state>(handle);
      text += ' ' + to + (link != nullptr && link->desk && link->desk->is_up() ? " (up)" : " (down)");
    }
    text += ", cameras";
    for (const auto& [camera, entry] : own->plan->own().cameras)
      text += ' ' + camera + '#' + std::to_string(entry.fence) + "->" + entry.stream +
              (entry.hand_to.empty() ? "" : " to " + entry.hand_to);
    text += ", states";
    for (const auto& [camera, state] : parts_->board.cameras())
      text += ' ' + camera + ' ' + std::string(actors::name_of(state));
  }
  if (const dock_state* const own = state_of<dock_state>(parts_->dock); own != nullptr) {
    text += ", linked by";
    for (const auto& [passage, link] : own->links) text += ' ' + passage.owner;
    text += ", guests";
    for (const auto& [camera, guest] : own->book.guests())
      text += ' ' + camera + '#' + std::to_string(guest.fence) + "<-" + guest.from +
              (guest.away ? " (away)" : "");
    if (own->encodings) text += ", encodes" + own->encodings->describe();
  }
  if (const gateway_state* const own = state_of<gateway_state>(parts_->gateway);
      own != nullptr && own->joining) {
    text +=
        ", gateway: " + own->joining->trouble() + ", has " + std::to_string(own->desk->has()) + ", series";
    for (const auto& camera : commons_.cameras)
      if (const SeriesTenure* const tenure = own->desk->books().tenure(camera.name); tenure != nullptr)
        text += ' ' + camera.name + '#' + std::to_string(tenure->fence) + "<-" + tenure->maker;
  }
  if (const maker_state* const own = state_of<maker_state>(parts_->maker); own != nullptr && own->desk)
    text += ", maker: " + std::to_string(own->desk->waiting()) + " wait, claims " +
            std::to_string(own->desk->claiming());
  text += ", dropped";
  std::istringstream lines(parts_->metrics.text());
  for (std::string line; std::getline(lines, line);)
    if ((line.starts_with("vigil_frames_dropped_total{") ||
         line.starts_with("vigil_messages_dropped_total{")) &&
        !line.ends_with(" 0"))
      text += ' ' + line.substr(line.find('{'));
  return text;
}

}  // namespace vigil::fleet::sim
