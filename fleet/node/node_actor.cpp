#include "fleet/node/node_actor.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "actors/messages/shell.h"
#include "fleet/link/link_actor.h"

namespace vigil::fleet {
namespace {

using actors::CameraState;
using cluster::Membership;

constexpr std::chrono::milliseconds kNodeTick{500};
constexpr std::chrono::seconds kGreetingPatience{5};

/// As the planner sees a camera. That its stream costs what it does, no node has measured yet.
cluster::WantedCamera wanted(const config::CameraSettings& camera) {
  return {camera.name, 1, 1};
}

}  // namespace

void node_state::start() {
  loop = std::make_unique<ActorLoop>(node_actor(self));
  desk.emplace(deps->fleet, deps->clock);
  if (deps->dock) self->monitor(deps->dock);
  if (deps->supervisor) self->monitor(deps->supervisor);
  seeds_left = deps->seeds.size();
  for (const cluster::PeerAddress& seed : deps->seeds)
    deps->ways.resolve(seed, [way = *loop, this, seed](std::vector<cluster::PeerAddress> addresses) mutable {
      way.post([this, seed, addresses = std::move(addresses)] {
        seeds_left += addresses.size();
        for (const cluster::PeerAddress& address : addresses) ask_seed({address.host, seed.port});
        heard_seed(seed, "");
      });
    });
  if (seeds_left == 0) join();
}

void node_state::ask_seed(const cluster::PeerAddress& seed) {
  deps->ways.find(seed, [way = *loop, this, seed](std::variant<greeter_actor, std::string> found) mutable {
    way.post([this, seed, found = std::move(found)] {
      // One that is not there yet will ask this one.
      const auto* const greeter = std::get_if<greeter_actor>(&found);
      if (greeter == nullptr) return heard_seed(seed, "");
      const auto sent = deps->clock.now();
      self->request(*greeter, kGreetingPatience, greet_atom_v, print(greeting()))
          .then(
              [this, seed, sent](const std::string& text) {
                const auto way_there = std::chrono::duration_cast<base::Duration>(deps->clock.now() - sent);
                heard_seed(seed, why_not(text, way_there));
              },
              [this, seed](const caf::error&) { heard_seed(seed, ""); });
    });
  });
}

void node_state::heard_seed(const cluster::PeerAddress& seed, const std::string& refusal) {
  if (!refusal.empty())
    return expel("this node does not fit fleet " + deps->fleet + ", says the one at " +
                 cluster::text_of(seed) + ": " + refusal);
  if (--seeds_left == 0 && !was_expelled) join();
}

void node_state::join() {
  const auto say = [&logger = deps->logger](const std::string& line) { logger.warn("node: {}", line); };
  member.emplace(deps->registry, *loop, deps->clock,
                 cluster::FleetMember::Options{.fleet = deps->fleet,
                                               .record = deps->record,
                                               .ttl = deps->lease,
                                               .changed = [this] { members_changed(); },
                                               .log = say});
  plan.emplace(
      deps->registry, *loop, deps->clock, *member,
      cluster::PlanKeeper::Options{.planning = {}, .changed = [this] { plan_changed(); }, .log = say});
  std::vector<cluster::WantedCamera> all;
  for (const config::CameraSettings& camera : deps->cameras) {
    if (!camera.enabled) continue;
    cameras.emplace(camera.name, &camera);
    all.push_back(wanted(camera));
  }
  plan->want(std::move(all));
  member->stand_for_planner(true);
  if (deps->supervisor)
    self->request(deps->supervisor, caf::infinite, actors::stages_atom_v)
        .then([this](const actors::Stages& own) {
          stages = own;
          has_stages = true;
          link_up();
        });
  self->send(self, actors::tick_atom_v);
}

/// Why a node's answer to a greeting means that the two do not fit; empty if they do.
std::string node_state::why_not(const std::string& text, base::Duration way) const {
  try {
    const cluster::GreetingAnswer heard = cluster::parse_answer(text);
    if (!heard.greeting) return "it refuses this node: " + heard.refusal;
    return cluster::misfit(greeting(), *heard.greeting, deps->clock.wall(), way).value_or("");
  } catch (const std::exception& error) {
    return error.what();
  }
}

cluster::Greeting node_state::greeting() const {
  return {deps->fleet, member ? member->record() : deps->record, deps->clock.wall()};
}

std::string node_state::answer(const std::string& text) {
  try {
    const cluster::Greeting theirs = cluster::parse_greeting(text);
    if (const auto why = cluster::misfit(greeting(), theirs, deps->clock.wall(), base::Duration(0))) {
      deps->logger.error("node: refused node {} at {}: {}", theirs.node.name,
                         cluster::text_of(theirs.node.control), *why);
      return print(cluster::GreetingAnswer{std::nullopt, *why});
    }
    if (theirs.node.name != deps->record.name && member) {
      desk->came(theirs.node);
      meet(theirs.node.name, caf::actor_cast<greeter_actor>(self->current_sender()));
      list_bulk_peers();
      link_up();
    }
    return print(cluster::GreetingAnswer{greeting(), {}});
  } catch (const std::exception& error) {
    deps->logger.error("node: refused a node: {}", error.what());
    return print(cluster::GreetingAnswer{std::nullopt, error.what()});
  }
}

void node_state::greet(const cluster::NodeRecord& node) {
  deps->ways.find(node.control,
                  [way = *loop, this, node](std::variant<greeter_actor, std::string> found) mutable {
                    way.post([this, node, found = std::move(found)] {
                      if (const auto* reason = std::get_if<std::string>(&found)) return failed(node, *reason);
                      const greeter_actor& greeter = std::get<greeter_actor>(found);
                      const auto sent = deps->clock.now();
                      self->request(greeter, kGreetingPatience, greet_atom_v, print(greeting()))
                          .then([=, this](const std::string& text) { greeted(node, greeter, sent, text); },
                                [=, this](const caf::error&) { failed(node, "it does not answer"); });
                    });
                  });
}

void node_state::greeted(const cluster::NodeRecord& node, const greeter_actor& greeter,
                         base::Clock::TimePoint sent, const std::string& text) {
  const auto way = std::chrono::duration_cast<base::Duration>(deps->clock.now() - sent);
  if (const std::string why = why_not(text, way); !why.empty()) return failed(node, why);
  const cluster::NodeRecord there = cluster::parse_answer(text).greeting->node;
  if (there.name != node.name || there.incarnation != node.incarnation)
    return failed(node, "another node answers there: " + there.name);
  desk->greeted(node.name, node.incarnation);
  meet(node.name, greeter);
  list_bulk_peers();
  link_up();
}

void node_state::meet(const std::string& node, greeter_actor greeter) {
  self->monitor(greeter);
  greeters[node] = std::move(greeter);
}

void node_state::part_from(const caf::actor_addr& greeter) {
  const auto gone =
      std::ranges::find_if(greeters, [&](const auto& each) { return each.second.address() == greeter; });
  if (gone == greeters.end()) return;
  // What is sent by the old handle is lost from now on, whether the node is still there or not.
  deps->logger.warn("node: the connection to node {} ended", gone->first);
  desk->lost(gone->first);
  greeters.erase(gone);
}

void node_state::failed(const cluster::NodeRecord& node, const std::string& reason) {
  const auto troubles = desk->troubles();
  const auto before = troubles.find(node.name);
  if (before == troubles.end() || before->second != reason)
    deps->logger.error("node: no way to node {}: {}", node.name, reason);
  desk->failed(node.name, node.incarnation, reason);
}

void node_state::members_changed() {
  if (member->state() == Membership::replaced)
    expel("another node is called " + member->record().name + " now");
  desk->see(member->nodes(), member->record().name);
  plan->step();
  for (const cluster::NodeRecord& node : desk->take_greetings()) greet(node);
  list_bulk_peers();
  link_up();
}

void node_state::expel(const std::string& why) {
  // Whoever stops, stops what it does, too.
  if (!is_stopping && !std::exchange(was_expelled, true) && deps->expelled) deps->expelled(why);
}

void node_state::plan_changed() {
  if (!deps->supervisor) return;
  actors::CameraList list;
  std::map<std::string, std::string> now;
  for (const auto& [camera, entry] : plan->own().cameras) {
    const auto settings = cameras.find(camera);
    if (settings == cameras.end()) {
      if (unknown.insert(camera).second)
        deps->logger.error("node: camera {} is planned for this node, whose configuration does not have it",
                           camera);
      continue;
    }
    const base::Clock::WallTime origin{std::chrono::milliseconds(entry.origin_ms)};
    list.cameras.push_back(std::make_shared<const actors::OwnCamera>(
        *settings->second, actors::Tenure{entry.fence, origin, entry.stream}));
    now[camera] = entry.stream;
  }
  // What is left of a camera where it is not computed any more.
  for (const auto& [camera, device] : now)
    if (const auto before = devices.find(camera); before != devices.end() && before->second != device)
      if (const auto link = links.find(before->second); link != links.end())
        self->send(link->second, moved_atom_v, camera);
  devices = std::move(now);
  self->send(deps->supervisor, actors::reload_atom_v, std::move(list));
  link_up();
  if (!plan->own().cameras.empty()) return;
  for (auto& promise : std::exchange(draining, {})) promise.deliver(true);
}

void node_state::list_bulk_peers() {
  if (deps->ways.bulk == nullptr) return;
  std::vector<cluster::BulkPeer> peers;
  for (const cluster::NodeRecord& node : desk->known()) {
    const auto key = std::pair(node.name, node.incarnation);
    const auto known = endpoints.find(key);
    if (known == endpoints.end()) {
      endpoints[key];
      deps->ways.resolve(node.bulk,
                         [way = *loop, this, key](std::vector<cluster::PeerAddress> found) mutable {
                           way.post([this, key, found = std::move(found)] {
                             // Asked again with the next change, if it is not known yet.
                             if (found.empty()) {
                               endpoints.erase(key);
                             } else {
                               endpoints[key] = "tcp://" + cluster::text_of(found.front());
                               list_bulk_peers();
                             }
                           });
                         });
    } else if (!known->second.empty()) {
      cluster::BulkPeer peer{node.name, known->second};
      if (!node.bulk_key.empty()) peer.keys = {node.bulk_key};
      peers.push_back(std::move(peer));
    }
  }
  try {
    deps->ways.bulk->set_peers(peers);
  } catch (const std::exception& error) {
    deps->logger.error("node: {}", error.what());
  }
}

void node_state::link_up() {
  if (!has_stages) return;
  for (const std::string& node : computing_nodes(plan->own())) {
    if (links.contains(node) || linking.contains(node)) continue;
    if (node == member->record().name) {
      if (deps->dock) make_link(node, deps->dock);
      continue;
    }
    const auto greeter = greeters.find(node);
    if (greeter == greeters.end() || !desk->knows(node)) continue;
    linking.insert(node);
    self->request(greeter->second, kGreetingPatience, dock_atom_v)
        .then(
            [this, node](const caf::strong_actor_ptr& there) {
              linking.erase(node);
              if (there) make_link(node, caf::actor_cast<dock_actor>(there));
            },
            [this, node](const caf::error&) { linking.erase(node); });
  }
}

void node_state::make_link(const std::string& node, const dock_actor& there) {
  const bool is_here = node == member->record().name;
  LinkDesk::Send send;
  if (is_here) {
    send = [there, node](const cluster::BulkMessage& message) {
      caf::anon_send(there, std::make_shared<BulkArrival>(BulkArrival{node, {message, 0, {}}}));
      return cluster::BulkSent{cluster::BulkSent::Answer::taken, 0};
    };
  } else {
    send = [&bulk = *deps->ways.bulk, node](const cluster::BulkMessage& message) {
      return bulk.send(node, message);
    };
  }
  const link_actor made = self->spawn<caf::monitored>(
      link,
      LinkDeps{member->record().name, node, std::move(send), deps->group, deps->clock, deps->metrics,
               deps->logger},
      there, stages.router, stages.alerts, actors::device_listener_actor(deps->supervisor));
  links[node] = made;
  if (is_here || open_ways.contains(node)) self->send(made, BulkNews{node, BulkNews::What::opened});
}

void node_state::hear(const BulkNews& news) {
  if (news.direction == cluster::BulkDirection::outgoing) {
    if (news.what == BulkNews::What::opened) open_ways.insert(news.node);
    if (news.what == BulkNews::What::ended) open_ways.erase(news.node);
    if (const auto link = links.find(news.node); link != links.end()) self->send(link->second, news);
  } else if (deps->dock) {
    self->send(deps->dock, news);
  }
}

/// Tells up to which fence all cameras that this node was given deliver, or were tried in vain.
void node_state::settle() {
  const auto states = deps->board.cameras();
  std::map<cluster::Fence, bool> tried;
  for (const auto& [camera, entry] : plan->own().cameras) {
    if (!entry.hand_to.empty()) continue;
    const auto state = states.find(camera);
    tried[entry.fence] = state != states.end() && state->second != CameraState::connecting;
  }
  cluster::Fence settled = 0;
  for (const auto& [fence, is_tried] : tried) {
    if (!is_tried) break;
    settled = fence;
  }
  if (settled > member->record().settled)
    member->alter([settled](cluster::NodeRecord& record) { record.settled = settled; });
}

void node_state::tick() {
  for (const cluster::NodeRecord& node : desk->take_greetings()) greet(node);
  link_up();
  settle();
  self->delayed_send(self, kNodeTick, actors::tick_atom_v);
}

void node_state::drain() {
  is_stopping = true;
  if (member) member->alter([](cluster::NodeRecord& record) { record.state = cluster::NodeState::draining; });
}

void node_state::stop() {
  is_stopping = true;
  if (member) {
    member->leave([this] { self->quit(); });
  } else {
    self->quit();
  }
  for (const auto& [node, link] : links) self->send(link, actors::stop_atom_v);
}

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, NodeDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->set_down_handler([self](const caf::down_msg& message) {
    node_state& own = self->state;
    if (message.source == caf::actor_cast<caf::actor_addr>(own.deps->dock) ||
        message.source == caf::actor_cast<caf::actor_addr>(own.deps->supervisor))
      return own.expel("what this node does has failed");
    own.part_from(message.source);
    std::erase_if(self->state.links,
                  [&](const auto& link) { return link.second.address() == message.source; });
  });
  self->state.deps.emplace(std::move(deps));
  self->state.start();
  return {
      [self](greet_atom, const std::string& text) { return self->state.answer(text); },
      [self](dock_atom) { return caf::actor_cast<caf::strong_actor_ptr>(self->state.deps->dock); },
      [](const Piece& piece) { piece.run(); },
      [self](const BulkNews& news) { self->state.hear(news); },
      [self](const BulkArrivalPtr& arrival) {
        if (self->state.deps->dock) self->send(self->state.deps->dock, arrival);
      },
      [self](drain_atom) -> caf::result<bool> {
        self->state.drain();
        if (!self->state.plan || self->state.plan->own().cameras.empty()) return true;
        auto promise = self->make_response_promise<bool>();
        self->state.draining.push_back(promise);
        return promise;
      },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::fleet
