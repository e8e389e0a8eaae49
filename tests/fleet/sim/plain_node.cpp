#include "tests/fleet/sim/plain_node.h"

#include <algorithm>
#include <utility>

namespace vigil::fleet::sim {
namespace {

using cluster::Membership;
using cluster::NodeRole;

constexpr std::chrono::milliseconds kTick{1000};
constexpr std::chrono::seconds kPatience{5};
/// Until a source was opened, or was tried in vain.
constexpr std::chrono::seconds kOpening{2};
constexpr std::chrono::seconds kDraining{20};
/// As the dock's.
constexpr std::chrono::seconds kAway{15};

/// A clock that goes on half of the time.
class SlowClock final : public base::Clock {
 public:
  explicit SlowClock(const base::Clock& clock) : clock_(clock), begin_(clock.now()) {}
  TimePoint now() const override { return begin_ + (clock_.now() - begin_) / 2; }
  WallTime wall() const override { return clock_.wall(); }

 private:
  const base::Clock& clock_;
  const TimePoint begin_;
};

void meddle(const Mistakes& mistakes, const std::string& plans,
            const std::map<std::string, cluster::NodeRecord>& nodes,
            cluster::RegistryTransaction& transaction) {
  if (mistakes.registry_ignores_conditions) transaction.conditions.clear();
  if (mistakes.planner_gives_old_fences) {
    for (auto& change : transaction.changes) {
      auto* put = std::get_if<cluster::RegistryPut>(&change);
      if (put == nullptr || !put->key.starts_with(plans)) continue;
      cluster::NodePlan plan = cluster::parse_plan(put->value);
      for (auto& [camera, entry] : plan.cameras)
        if (entry.fence == plan.fence && entry.fence > 6) entry.fence -= 6;
      put->value = print(plan);
    }
  }
  if (mistakes.planner_leaves_cameras_to_the_dead) {
    const bool takes_from_dead = std::ranges::any_of(transaction.changes, [&](const auto& change) {
      const auto* gone = std::get_if<cluster::RegistryDelete>(&change);
      return gone != nullptr && gone->key.starts_with(plans) &&
             !nodes.contains(gone->key.substr(plans.size()));
    });
    if (takes_from_dead) transaction.conditions.push_back({"nothing", 1});
  }
}

}  // namespace

PlainNode::PlainNode(Commons& commons, Host& host, std::set<NodeRole> roles, const std::string& incarnation)
    : commons_(commons),
      host_(host),
      loop_(commons.world, host),
      reads_(roles.contains(NodeRole::camera)),
      computes_(roles.contains(NodeRole::stream)),
      registry_(make_registry_client(commons.registry, host)),
      desk_(host.clock) {
  const Mistakes& mistakes = commons_.mistakes;
  const cluster::FleetKeys keys(commons_.fleet);
  if (mistakes.registry_ignores_conditions || mistakes.planner_gives_old_fences ||
      mistakes.planner_leaves_cameras_to_the_dead || mistakes.registry_is_trusted)
    registry_ = std::make_unique<MeddledRegistry>(
        std::move(registry_),
        MeddledRegistry::Meddling{
            .transaction =
                [this, plans = keys.plans()](cluster::RegistryTransaction& transaction) {
                  static const std::map<std::string, cluster::NodeRecord> kNone;
                  meddle(commons_.mistakes, plans, member_ ? member_->nodes() : kNone, transaction);
                },
            .has_one_history = mistakes.registry_is_trusted});
  const base::Clock* clock = &host_.clock;
  if (mistakes.member_believes_too_long) {
    slow_ = std::make_unique<SlowClock>(host_.clock);
    clock = slow_.get();
  }
  commons_.network.listen(host_, [this](const ConnectionPtr& connection) { own(connection, 1); });
  // Pieces of the classes may run before they are all there: not before the next event.
  member_.emplace(*registry_, loop_, *clock,
                  cluster::FleetMember::Options{.fleet = commons_.fleet,
                                                .record = record(roles, incarnation),
                                                .ttl = std::chrono::seconds(5),
                                                .changed = [this] { members_changed(); }});
  plan_.emplace(*registry_, loop_, host_.clock, *member_,
                cluster::PlanKeeper::Options{.planning = {}, .changed = [this] { plan_changed(); }});
  std::vector<cluster::WantedCamera> wanted;
  for (const std::string& camera : commons_.cameras) wanted.push_back({camera, 1, 1});
  plan_->want(std::move(wanted));
  member_->stand_for_planner(true);
  tick();
}

PlainNode::~PlainNode() {
  commons_.network.listen(host_, nullptr);
  for (const auto& [key, connection] : std::exchange(connections_, {})) {
    connection.first->own(connection.second, nullptr, nullptr);
    connection.first->close(connection.second);
  }
}

cluster::NodeRecord PlainNode::record(const std::set<NodeRole>& roles, const std::string& incarnation) const {
  cluster::NodeRecord record;
  record.name = host_.name;
  record.incarnation = incarnation;
  record.roles = roles;
  record.state = cluster::NodeState::ready;
  record.control = record.bulk = {host_.name, 1};
  record.version = "1";
  record.model = "model";
  return record;
}

cluster::Greeting PlainNode::greeting() const {
  return {commons_.fleet, member_->record(), host_.clock.wall()};
}

void PlainNode::own(const ConnectionPtr& connection, int side) {
  connections_[connection->number()] = {connection, side};
  connection->own(side, this, [this, number = connection->number()] { lost(number); });
}

void PlainNode::adopt(const std::string& peer, const ConnectionPtr& connection, int side) {
  const auto before = peers_.find(peer);
  if (before != peers_.end() && before->second.connection->is_open(before->second.side)) return;
  if (connection->is_open(side)) peers_[peer] = {connection, side};
}

void PlainNode::lost(std::uint64_t connection) {
  const auto gone = connections_.extract(connection);
  // What came before by another connection of the same node, which is gone, says nothing of this one.
  std::erase_if(links_, [&](const auto& link) {
    if (link.second != connection) return false;
    dock_.leave(link.first, host_.clock.now());
    return true;
  });
  for (auto peer = peers_.begin(); peer != peers_.end(); ++peer) {
    if (peer->second.connection->number() != connection) continue;
    const std::string name = peer->first;
    peers_.erase(peer);

    for (auto& [camera, own] : cameras_)
      if (own.stream == name) own.has_joined = false;
    desk_.lost(name, host_.name);
    return;
  }
}

void PlainNode::connect(const std::string& node, std::function<void(ConnectionPtr, int)> found) {
  for (const auto& host : commons_.world.hosts()) {
    if (host->name != node) continue;
    commons_.network.dial(
        host_, *host,
        [this, alive = std::weak_ptr<int>(alive_), found = std::move(found)](ConnectionPtr made) {
          if (alive.expired()) return;
          if (made) own(made, 0);
          found(std::move(made), 0);
        });
  }
}

void PlainNode::request(const ConnectionPtr& connection, int side,
                        std::function<std::string(PlainNode&, int side)> at, Answered answered) {
  const std::uint64_t number = ++last_request_;
  requests_[number] = std::move(answered);
  loop_.after(kPatience, [this, number, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    if (const Answered late = take_request(number)) late(std::nullopt);
  });
  connection->send(side, [connection, side, number, at = std::move(at)](void* there) {
    const std::string text = at(*static_cast<PlainNode*>(there), 1 - side);
    connection->send(1 - side, [number, text](void* here) {
      if (const Answered asked = static_cast<PlainNode*>(here)->take_request(number)) asked(text);
    });
  });
}

PlainNode::Answered PlainNode::take_request(std::uint64_t number) {
  const auto request = requests_.find(number);
  if (request == requests_.end()) return nullptr;
  Answered answered = std::exchange(request->second, nullptr);
  if (!commons_.mistakes.requests_are_kept) requests_.erase(request);
  return answered;
}

void PlainNode::greet(const cluster::NodeRecord& node) {
  connect(node.control.host, [this, node](const ConnectionPtr& connection, int side) {
    if (!connection) return desk_.failed(node.name, node.incarnation, "nobody answers");
    const auto sent = host_.clock.now();
    request(
        connection, side,
        [connection, text = print(greeting())](PlainNode& there, int its_side) {
          return there.answer(text, connection, its_side);
        },
        [this, node, connection, side, sent](const std::optional<std::string>& text) {
          const auto fail = [&](const std::string& why) {
            connections_.erase(connection->number());
            connection->own(side, nullptr, nullptr);
            connection->close(side);
            desk_.failed(node.name, node.incarnation, why);
          };
          if (!text) return fail("it does not answer");
          const cluster::GreetingAnswer heard = cluster::parse_answer(*text);
          if (!heard.greeting) return fail(heard.refusal);
          const auto way = std::chrono::duration_cast<base::Duration>(host_.clock.now() - sent);
          if (const auto why = cluster::misfit(greeting(), *heard.greeting, host_.clock.wall(), way))
            return fail(*why);
          if (heard.greeting->node.incarnation != node.incarnation) return fail("another one answers");
          desk_.greeted(node.name, node.incarnation);
          adopt(node.name, connection, side);
        });
  });
}

std::string PlainNode::answer(const std::string& text, const ConnectionPtr& connection, int side) {
  const cluster::Greeting theirs = cluster::parse_greeting(text);
  if (const auto why = cluster::misfit(greeting(), theirs, host_.clock.wall(), std::nullopt))
    return print(cluster::GreetingAnswer{std::nullopt, *why});
  desk_.came(theirs.node);
  adopt(theirs.node.name, connection, side);
  return print(cluster::GreetingAnswer{greeting(), {}});
}

void PlainNode::members_changed() {
  if (!plan_) return;
  desk_.see(member_->nodes(), member_->record());
  plan_->step();
  for (const cluster::NodeRecord& node : desk_.take_greetings()) greet(node);
  if (commons_.mistakes.camera_ends_when_cut_off && member_->state() == Membership::cut_off) cameras_.clear();
}

void PlainNode::plan_changed() {
  desk_.need(nodes_for(plan_->own()));
  for (const cluster::NodeRecord& node : desk_.take_greetings()) greet(node);
  if (!reads_) return;
  std::map<std::string, Camera> now;
  for (const auto& [name, entry] : plan_->own().cameras) {
    const auto before = cameras_.find(name);
    if (before != cameras_.end() && before->second.fence == entry.fence) {
      now[name] = before->second;
      if (before->second.stream != entry.stream) now[name].has_joined = false;
    } else {
      now[name].fence = entry.fence;
      now[name].opened = commons_.world.now() + host_.clock.lasting(kOpening);
    }
    now[name].stream = entry.stream;
  }
  cameras_ = std::move(now);
  member_->refuse(refusals_.too_low(plan_->own().cameras));
  if (drained_ && cameras_.empty()) loop_.post(std::exchange(drained_, nullptr));
}

void PlainNode::tick() {
  for (const cluster::NodeRecord& node : desk_.take_greetings()) greet(node);
  for (auto& [name, camera] : cameras_) send_of(name, camera);
  settle();
  for (const std::string& camera : dock_.overdue(host_.clock.now(), kAway)) dock_.end(camera);
  loop_.after(kTick, [this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) tick();
  });
}

void PlainNode::send_of(const std::string& name, Camera& camera) {
  const Micros now = commons_.world.now();
  const bool is_here = camera.stream == host_.name;
  const auto peer = peers_.find(camera.stream);
  if (now < camera.opened) return;
  if (!is_here && (peer == peers_.end() || !desk_.knows(camera.stream))) return;
  const actors::WatchRef watch{name, actors::version_of(camera.fence, 1)};
  const std::uint64_t link = is_here ? 0 : peer->second.connection->number();
  const auto send = [&](Connection::Parcel parcel) {
    if (!is_here) return peer->second.connection->send(peer->second.side, std::move(parcel));
    loop_.post([this, alive = std::weak_ptr<int>(alive_), parcel = std::move(parcel)] {
      if (!alive.expired()) parcel(this);
    });
  };
  if (!std::exchange(camera.has_joined, true)) {
    camera.generation = ++generations_;
    send([join = Join{host_.name, watch, camera.generation, 0, link}](void* there) {
      static_cast<PlainNode*>(there)->dock_join(join);
    });
  }
  // Two at once, so that there is an order to be kept.
  if (camera.sequence > 0 && now - camera.sent < commons_.patches) return;
  camera.sent = now;
  for (int i = 0; i < 2; ++i)
    send([patch = Join{host_.name, watch, camera.generation, ++camera.sequence, link}](void* there) {
      static_cast<PlainNode*>(there)->dock_patch(patch);
    });
}

void PlainNode::settle() {
  member_->settle(settled_of(plan_->own(), [this](const std::string& name) {
    const auto camera = cameras_.find(name);
    return camera != cameras_.end() && commons_.world.now() >= camera->second.opened;
  }));
}

void PlainNode::dock_join(const Join& join) {
  if (!computes_) return;

  auto watch = std::make_shared<actors::WatchSettings>();
  watch->name = join.watch.camera;
  watch->version = join.watch.version;
  const auto joined =
      dock_.join(join.node, {join.node, host_.name, host_.name}, watch, join.generation, true);
  if (joined.admitted) {
    links_[join.node] = join.link;
    return;
  }
  commons_.world.note(Kind::refused, host_.id, -1, actors::fence_of(join.watch.version));
  const auto connection = connections_.find(join.link);
  if (join.node == host_.name) {
    refused(watch->name, joined.fence);
  } else if (connection != connections_.end()) {
    const auto& [way, side] = connection->second;
    way->send(side, [camera = watch->name, fence = joined.fence](void* there) {
      static_cast<PlainNode*>(there)->refused(camera, fence);
    });
  }
}

void PlainNode::refused(const std::string& camera, cluster::Fence fence) {
  if (fence > member_->record().highest_fence) {
    member_->saw(fence);
    member_->doubt();
  }
  refusals_.refused(camera, fence);
  member_->refuse(refusals_.too_low(plan_->own().cameras));
}

void PlainNode::dock_patch(const Join& patch) {
  const DockBook::Guest* const guest = dock_.brought(patch.node, patch.watch);
  if (commons_.mistakes.dock_ignores_fences)
    return commons_.audit.taken(host_, patch.watch.camera, actors::fence_of(patch.watch.version), patch.node,
                                patch.generation, patch.sequence);
  const bool is_its = guest != nullptr && guest->own_generation == patch.generation;
  if (!is_its && dock_.brought_before(patch.node, patch.watch, patch.generation) == nullptr) return;
  if (is_its) dock_.drop_former(patch.watch.camera);
  commons_.audit.taken(host_, patch.watch.camera, actors::fence_of(patch.watch.version), patch.node,
                       patch.generation, patch.sequence);
}

void PlainNode::drain(std::function<void()> done) {
  const auto finish = [this, done = std::move(done)] { member_->leave(done); };
  member_->alter([](cluster::NodeRecord& record) { record.state = cluster::NodeState::draining; });
  if (plan_->own().cameras.empty() || !reads_) return finish();
  drained_ = finish;
  loop_.after(kDraining, [this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired() || !drained_) return;
    std::exchange(drained_, nullptr)();
  });
}

void PlainNode::tell() {
  commons_.audit.believes(host_, member_->record().incarnation, member_->state() == Membership::member);
  commons_.audit.bounded("requests of a node", requests_.size(), 16);
}

std::string PlainNode::describe() const {
  std::string text = std::string(name_of(member_->state())) + ", knows";
  for (const cluster::NodeRecord& node : desk_.known()) text += ' ' + node.name;
  text += ", troubles";
  for (const auto& [name, trouble] : desk_.troubles()) text += ' ' + name + ": " + trouble + ';';
  text += ", connected to";
  for (const auto& [name, peer] : peers_)
    text += ' ' + name + (peer.connection->is_open(1 - peer.side) ? "" : " (on this side alone)");
  text += ", cameras";
  for (const auto& [name, camera] : cameras_)
    text += ' ' + name + '#' + std::to_string(camera.fence) + "->" + camera.stream +
            (camera.has_joined ? "" : " (has not joined)");
  text += ", guests";
  for (const auto& [camera, guest] : dock_.guests())
    text +=
        ' ' + camera + '#' + std::to_string(guest.fence) + "<-" + guest.from + (guest.away ? " (away)" : "");
  return text;
}

}  // namespace vigil::fleet::sim
