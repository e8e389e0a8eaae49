#include "fleet/node/node_actor.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "actors/messages/shell.h"
#include "fleet/node/node_patience.h"
#include "fleet/turns/turns_actor.h"

namespace vigil::fleet {
namespace {

using cluster::Membership;

constexpr std::chrono::milliseconds kNodeTick{500};
constexpr std::chrono::seconds kNoWay{2};
/// How long there has to be no way to a node before that is told: longer than the lease of one that is gone
/// for all.
constexpr base::Duration kLeastStanding{3000};
constexpr base::Duration kBeyondLease{1000};

}  // namespace

void node_state::start() {
  loop = std::make_unique<ActorLoop>(node_actor(self));
  desk.emplace(deps->clock);
  ways_out.emplace(deps->clock, std::max(kLeastStanding, deps->lease) + kBeyondLease);
  ways_in.emplace(deps->clock, cluster::text_of(deps->record.control));
  reporter.emplace(deps->board, deps->series,
                   NodeReport::Options{.fleet = deps->fleet, .tells_phase = !deps->supervisor});
  if (deps->fetcher) {
    self->monitor(deps->fetcher);
    self->send(deps->fetcher, stand_atom_v);
  }
  if (deps->past) {
    self->monitor(deps->past);
    self->send(deps->past, stand_atom_v);
  }
  if (deps->dock) {
    self->monitor(deps->dock);
    self->send(deps->dock, way_atom_v, caf::actor_cast<caf::strong_actor_ptr>(node_actor(self)));
  }
  if (deps->supervisor) self->monitor(deps->supervisor);
  if (deps->gateway) self->monitor(deps->gateway);
  if (deps->maker) self->monitor(deps->maker);
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
              [this, seed, sent, greeter = *greeter](const std::string& text) {
                const auto way_there = std::chrono::duration_cast<base::Duration>(deps->clock.now() - sent);
                const std::string refusal = why_not(text, way_there);
                // It knows this node by now, and so need not greet it.
                if (refusal.empty()) {
                  const cluster::NodeRecord node = cluster::parse_answer(text).greeting->node;
                  met[{node.name, node.incarnation}] = greeter;
                }
                heard_seed(seed, refusal);
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
                                               .entering = [this] { enter(); },
                                               .namesake = [this](const auto&) { look_for_namesake(); },
                                               .changed = [this] { members_changed(); },
                                               .log = say});
  plan.emplace(
      deps->registry, *loop, deps->clock, *member,
      cluster::PlanKeeper::Options{.planning = {}, .changed = [this] { plan_changed(); }, .log = say});
  follow_configuration();
  if (deps->supervisor)
    // Without a limit: it is of this process, answers from what it has, and if it ends, that is the answer.
    self->request(deps->supervisor, caf::infinite, actors::stages_atom_v)
        .then([this](const actors::Stages& own) {
          stages = own;
          has_stages = true;
          turns = self->spawn<caf::monitored>(
              fleet::turns,
              TurnsDeps{deps->logger,
                        [way = *loop, this](const std::set<std::uint64_t>& over) mutable {
                          way.post([this, over] {
                            filled = over;
                            fill();
                          });
                        }},
              stages.alerts);
          self->send<caf::message_priority::high>(turns, std::make_shared<const Places>(places.places()));
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
    const std::string& them = theirs.node.name;
    const auto there = greeters.find(them);
    const auto sender = caf::actor_cast<greeter_actor>(self->current_sender());
    const bool had_way = desk && desk->had_way(them, theirs.node.incarnation);
    // By whichever of its actors: the way there stays the one that there is.
    const bool is_known = there != greeters.end() && had_way && desk->knows(them);
    const auto why = cluster::misfit(greeting(), theirs, deps->clock.wall(), std::nullopt);
    // Its clock is behind, or it was long under way: its answer will tell.
    const bool is_late = !why && cluster::misfit(greeting(), theirs, deps->clock.wall(), base::Duration(0));
    if (is_known && (!why || cluster::is_about_clocks(*why))) {
      // It asks again, whether all is as it was.
      if (is_late) {
        check(theirs.node);
      } else {
        checked(theirs.node, why.value_or(""));
      }
      list_bulk_peers();
      link_up();
      return print(cluster::GreetingAnswer{greeting(), {}});
    }
    if (why && !(had_way && cluster::is_about_clocks(*why))) {
      deps->logger.error("node: refused node {} at {}: {}", theirs.node.name,
                         cluster::text_of(theirs.node.control), *why);
      return print(cluster::GreetingAnswer{std::nullopt, *why});
    }
    if (is_late && !had_way) {
      ask_for_time(theirs.node, sender);
    } else {
      let_in(theirs.node, sender, why.value_or(""));
      if (is_late) check(theirs.node);
    }
    return print(cluster::GreetingAnswer{greeting(), {}});
  } catch (const std::exception& error) {
    deps->logger.error("node: refused a node: {}", error.what());
    return print(cluster::GreetingAnswer{std::nullopt, error.what()});
  }
}

/// `fault`: of its clock, which breaks no way that stood.
void node_state::let_in(const cluster::NodeRecord& node, const greeter_actor& greeter,
                        const std::string& fault) {
  if (node.name == deps->record.name || !member || !greeter) return;
  const auto known = member->nodes().find(node.name);
  if (known == member->nodes().end() || known->second.incarnation == node.incarnation) {
    if (!desk->came(node)) {
      // It is known when the registry tells of it, and comes again or is asked then.
      deps->logger.warn(
          "node: node {} is not known yet: {} others have come of which the registry does not tell",
          node.name, NodeDesk::kMostUnseen);
      return;
    }
    if (!fault.empty()) checked(node, fault);
    found_way(node.name, greeter);
  } else {
    // By the registry another one has that name: it counts until that tells otherwise.
    std::erase_if(met, [&](const auto& each) { return each.first.first == node.name; });
    met[{node.name, node.incarnation}] = greeter;
  }
}

/// Of one that comes for the first time, and whose greeting is of a time ago: its clock is behind, or the
/// greeting was long under way.
void node_state::ask_for_time(const cluster::NodeRecord& node, const greeter_actor& greeter) {
  if (!greeter || !asked_for_time.insert(node.name).second) return;
  const auto sent = deps->clock.now();
  self->request(greeter, kGreetingPatience, greet_atom_v, print(greeting()))
      .then(
          [=, this](const std::string& text) {
            asked_for_time.erase(node.name);
            const auto way = std::chrono::duration_cast<base::Duration>(deps->clock.now() - sent);
            const std::string why = why_not(text, way);
            if (why.empty()) return let_in(node, greeter, "");
            deps->logger.error("node: refused node {} at {}: {}", node.name, cluster::text_of(node.control),
                               why);
          },
          // Whoever does not answer comes again.
          [this, name = node.name](const caf::error&) { asked_for_time.erase(name); });
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
  const std::string why = why_not(text, way);
  // A clock that was set since does not keep a way from being made anew.
  const bool may_differ = cluster::is_about_clocks(why) && desk->had_way(node.name, node.incarnation);
  if (!why.empty() && !may_differ) return failed(node, why);
  const std::optional<cluster::Greeting> answer = cluster::parse_answer(text).greeting;
  if (!answer) return failed(node, why);
  const cluster::NodeRecord& there = answer->node;
  if (there.name != node.name || there.incarnation != node.incarnation)
    return failed(node, "another node answers there: " + there.name);
  desk->greeted(node.name, node.incarnation);
  if (!why.empty()) checked(node, why);
  found_way(node.name, greeter);
}

void node_state::found_way(const std::string& node, const greeter_actor& greeter) {
  // Those that came with names of which the registry did not tell in time.
  if (!greeters.contains(node))
    std::erase_if(greeters, [&](const auto& each) { return !desk->knows_of(each.first); });
  greeters[node] = greeter;
  watch(greeter.address());
  list_bulk_peers();
  link_up();
}

void node_state::watch(const caf::actor_addr& other) {
  // One that is found again and again, or by several names: each call makes a monitor of its own.
  if (watched.insert(other).second) self->monitor(other);
}

void node_state::lost(const caf::actor_addr& address) {
  for (const caf::actor_addr& part :
       {caf::actor_cast<caf::actor_addr>(deps->dock), caf::actor_cast<caf::actor_addr>(deps->supervisor),
        caf::actor_cast<caf::actor_addr>(deps->gateway), caf::actor_cast<caf::actor_addr>(deps->maker),
        caf::actor_cast<caf::actor_addr>(deps->fetcher), caf::actor_cast<caf::actor_addr>(deps->past),
        caf::actor_cast<caf::actor_addr>(turns)})
    if (part && address == part) return expel("what this node does has failed");
  watched.erase(address);
  gateways.lost(address);
  lost_way(address);
  std::erase_if(links, [&](const auto& link) { return link.second.address() == address; });
}

void node_state::lost_way(const caf::actor_addr& greeter) {
  std::erase_if(greeters, [&](const auto& each) {
    if (each.second.address() != greeter) return false;
    desk->lost(each.first, deps->record.name);
    return true;
  });
}

void node_state::failed(const cluster::NodeRecord& node, const std::string& reason) {
  const auto troubles = desk->troubles();
  const auto before = troubles.find(node.name);
  if (before == troubles.end() || before->second != reason)
    deps->logger.error("node: no way to node {}: {}", node.name, reason);
  desk->failed(node.name, node.incarnation, reason);
}

void node_state::members_changed() {
  if (member->state() == Membership::replaced) expel("another node is called " + member->record().name);
  desk->see(member->nodes(), member->record());
  plan->step();
  take_met();
  configuration->step();
  if (!entering)
    for (const cluster::NodeRecord& node : desk->take_greetings()) greet(node);
  list_bulk_peers();
  link_up();
}

void node_state::take_met() {
  for (const auto& [key, node] : member->nodes()) {
    const auto other = met.extract({key, node.incarnation});
    if (other.empty() || key == deps->record.name) continue;
    desk->came(node);
    found_way(key, other.mapped());
  }
}

void node_state::expel(const std::string& why) {
  // Whoever stops, stops what it does, too.
  if (!is_stopping && !std::exchange(was_expelled, true) && deps->expelled) deps->expelled(why);
}

void node_state::follow_gateways() {
  if (!member || (!deps->maker && !deps->gateway)) return;
  const auto asks = gateways.take_asks(
      *member, [this](const std::string& node) { return greeters.contains(node) && desk->knows(node); });
  for (const std::string& node : asks) {
    const std::string incarnation = member->nodes().at(node).incarnation;
    self->request(greeters.at(node), kGreetingPatience, gateway_atom_v)
        .then(
            [this, node, incarnation](const caf::strong_actor_ptr& there) {
              gateways.found(node, incarnation, caf::actor_cast<gateway_actor>(there));
              if (there) watch(there->address());
              follow_gateways();
            },
            [this, node](const caf::error&) { gateways.failed(node); });
  }
  const GatewayNewsPtr news = gateways.take_news(*member, deps->gateway);
  if (!news) return;
  if (deps->gateway) self->send(deps->gateway, news);
  if (deps->maker) self->send(deps->maker, news);
}

LinkDesk::Send node_state::send_to(const std::string& node, const dock_actor& there) {
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
  return send;
}

void node_state::greet_needed() {
  desk->need(needed());
  if (entering) return;
  for (const cluster::NodeRecord& node : desk->take_greetings()) greet(node);
}

std::set<std::string> node_state::needed() const {
  std::set<std::string> nodes = nodes_for(plan->own());
  // Of those that are gone the dock asks again.
  for (const std::string& node : sent_to)
    if (member->nodes().contains(node)) nodes.insert(node);
  // So that a way that stands again is found.
  nodes.merge(ways_out->all_unreachable());
  return nodes;
}

/// Those to whom no way for bulk bytes opens: they may have forgotten this one, as when they were cut off.
void node_state::greet_again() {
  if (deps->ways.bulk == nullptr) return;
  const auto now = deps->clock.now();
  std::map<std::string, base::Clock::TimePoint> still;
  const std::set<std::string> all = needed();
  for (const cluster::NodeRecord& node : desk->known()) {
    if (!all.contains(node.name) || open_ways.contains(node.name)) continue;
    const auto since = without_way.find(node.name);
    still[node.name] = since == without_way.end() ? now : since->second;
    if (now - still[node.name] < kNoWay) continue;
    still[node.name] = now;
    greet(node);
  }
  without_way = std::move(still);
}

void node_state::tick() {
  if (!entering)
    for (const cluster::NodeRecord& node : desk->take_greetings()) greet(node);
  greet_again();
  look_at_ways();
  link_up();
  settle();
  fill();
  tell_refused();
  tell_drained();
  look_at_configuration();
  report();
  ask_for_fences();
  self->delayed_send(self, kNodeTick, actors::tick_atom_v);
}

void node_state::stop() {
  is_stopping = has_stopped = true;
  reporter->end();
  if (member) {
    member->leave([this] { self->quit(); });
  } else {
    self->quit();
  }
  for (const auto& [node, link] : links) self->send(link, actors::stop_atom_v);
  if (turns) self->send(turns, actors::stop_atom_v);
}

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, NodeDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->set_down_handler([self](const caf::down_msg& message) { self->state.lost(message.source); });
  self->state.deps.emplace(std::move(deps));
  self->state.start();
  return {
      [self](greet_atom, const std::string& text) { return self->state.answer_in_full(text); },
      [self](dock_atom) { return caf::actor_cast<caf::strong_actor_ptr>(self->state.deps->dock); },
      [self](gateway_atom) { return caf::actor_cast<caf::strong_actor_ptr>(self->state.deps->gateway); },
      [self](past_atom) {
        const NodeDeps& known = *self->state.deps;
        return caf::actor_cast<caf::strong_actor_ptr>(known.remembers ? known.past : past_actor());
      },
      [self](serves_atom, bool serves) {
        if (self->state.member)
          self->state.member->alter([serves](cluster::NodeRecord& record) { record.serves = serves; });
      },
      [self](keeps_atom, bool keeps) {
        if (self->state.member)
          self->state.member->alter([keeps](cluster::NodeRecord& record) { record.keeps_events = keeps; });
      },
      [self](report_atom, const std::string& question) { return self->state.tell_of(question); },
      [self](find_atom, const std::string& file) { return self->state.find_evidence(file); },
      [self](find_atom, past_atom, const std::string& wish) { return self->state.find_clips(wish); },
      [self](fetch_atom, const EvidenceWish& wish) {
        if (self->state.deps->fetcher) self->send(self->state.deps->fetcher, fetch_atom_v, wish);
      },
      [self](stand_atom) { return self->state.standing(); },
      [self](fence_atom, const std::string& camera, std::uint64_t fence) {
        self->state.refused(camera, fence);
      },
      [](const Piece& piece) { piece.run(); },
      [self](const ReadConfigurationPtr& read) { self->state.read(read); },
      [self](const BulkNews& news) { self->state.hear(news); },
      [self](const BulkArrivalPtr& arrival) { self->state.hear(arrival); },
      [self](drain_atom) -> caf::result<bool> {
        self->state.drain();
        if (self->state.is_drained()) return true;
        auto promise = self->make_response_promise<bool>();
        self->state.draining.push_back(promise);
        return promise;
      },
      [self](way_atom, const std::string& to) {
        self->state.ways_wanted.insert(to);
        self->state.sent_to.insert(to);
        if (self->state.member) self->state.greet_needed();
        self->state.link_up();
      },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::fleet
