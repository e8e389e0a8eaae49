#include "fleet/past/past_actor.h"

#include <chrono>
#include <utility>
#include <variant>

#include "actors/messages/shell.h"
#include "cluster/membership/fleet_keys.h"

namespace vigil::fleet {
namespace {

constexpr std::chrono::milliseconds kPastTick{250};

}  // namespace

void past_state::start() {
  loop = std::make_unique<ActorLoop>(past_actor(self));
  book.emplace(deps->fleet, deps->node);
  series.emplace(deps->metrics);
  desk.emplace(*book, deps->clock, deps->incarnation);
  if (deps->cache) self->monitor(deps->cache);
  mirror.emplace(deps->registry, *loop,
                 cluster::RegistryMirror::Options{
                     .prefix = cluster::FleetKeys(deps->fleet).past(),
                     .changed = [this] { see(); },
                     .failed =
                         [this](const std::string& line) {
                           deps->logger.warn("past: what is to be erased is not known anew: {}", line);
                         }});
  self->send(self, actors::tick_atom_v);
}

void past_state::look_around(std::uint64_t id, const actors::PastRequest& what,
                             const NodeStanding& standing) {
  std::vector<std::string> to_ask, silent;
  for (const auto& [node, record] : standing.nodes) {
    const bool is_own = node == deps->node;
    if (is_own ? !deps->cache : !record.roles.contains(cluster::NodeRole::stream)) continue;
    (is_own || standing.ways.contains(node) ? to_ask : silent).push_back(node);
  }
  for (const std::string& node : book->with_disk()) {
    const auto record = standing.nodes.find(node);
    if (record == standing.nodes.end() || !record->second.roles.contains(cluster::NodeRole::stream))
      silent.push_back(node);
  }
  know_present(standing);
  desk->nodes(id, to_ask, silent);
  for (const std::string& node : to_ask) {
    if (node == deps->node) {
      ask(id, node, what, past_actor(self));
      continue;
    }
    self->request(standing.ways.at(node), deps->patience, past_atom_v)
        .then(
            [this, id, node, what](const caf::strong_actor_ptr& answering) {
              if (answering) {
                ask(id, node, what, caf::actor_cast<past_actor>(answering));
              } else if (book->with_disk().contains(node)) {
                desk->silent(id, node);
              } else {
                desk->absent(id, node);
              }
              settle();
            },
            [this, id, node](const caf::error&) {
              desk->silent(id, node);
              settle();
            });
  }
  settle();
}

void past_state::ask(std::uint64_t id, const std::string& node, const actors::PastRequest& what,
                     const past_actor& there) {
  // Its answer may come when nobody waits for it any more.
  const auto form = form_of(what, deps->clock.now());
  if (!form || !desk->waits(id, node)) return;
  asked[id].insert_or_assign(there.address(), node);
  if (there != self && watched.insert(there.address()).second) self->monitor(there);
  self->send(there, *form);
}

void past_state::look_for_clips(std::uint64_t id, const ClipWish& wish, const NodeStanding& standing) {
  std::vector<std::string> to_ask;
  for (const auto& [node, record] : standing.nodes)
    if (record.roles.contains(cluster::NodeRole::camera) &&
        (node == deps->node || standing.ways.contains(node)))
      to_ask.push_back(node);
  desk->clip_nodes(id, to_ask);
  const std::string text = print(wish);
  for (const std::string& node : to_ask) {
    const greeter_actor way =
        node == deps->node ? caf::actor_cast<greeter_actor>(owner) : standing.ways.at(node);
    self->request(way, deps->patience, find_atom_v, past_atom_v, text)
        .then(
            [this, id, node](const std::string& found) {
              desk->clips(id, node, parse_found_clips(found));
              settle();
            },
            // It has gone, or is of a build that knows no such question: its clips are not named.
            [this, id, node](const caf::error&) {
              desk->clips(id, node, std::nullopt);
              settle();
            });
  }
  settle();
}

void past_state::hear(const PastWord& word, const caf::actor_addr& from) {
  const auto nodes = asked.find(word.ticket);
  const auto reply = reply_of(word);
  if (nodes == asked.end() || !reply) return;
  const auto node = nodes->second.find(from);
  if (node != nodes->second.end()) desk->hear(word.ticket, node->second, *reply);
  settle();
}

void past_state::answer(const PastAsk& ask, const past_actor& asker) {
  if (!knows_erasures) {
    held.emplace_back(ask, asker);
    if (asker != self && watched.insert(asker.address()).second) self->monitor(asker);
    return;
  }
  auto request = request_of(ask, deps->clock.now());
  PastWord refusal{ask.ticket, static_cast<std::uint8_t>(actors::PastOutcome::unavailable), {}, 0, false};
  if (!deps->cache) {
    refusal.text = "it remembers nothing";
  } else if (!request) {
    refusal.text = "it does not know such a request";
  }
  if (!refusal.text.empty()) {
    self->send(asker, refusal);
    return;
  }
  request->ticket = ++tickets;
  askers.emplace(request->ticket, Asker{asker, ask.ticket});
  if (asker != self && watched.insert(asker.address()).second) self->monitor(asker);
  self->send(deps->cache, std::make_shared<const actors::PastRequest>(*std::move(request)));
}

void past_state::hear(const actors::PastReply& word) {
  if (const auto erasure = erasing.find(word.ticket); erasure != erasing.end()) {
    const std::string id = erasure->second;
    erasing.erase(erasure);
    return erased(id, word);
  }
  const auto asker = askers.find(word.ticket);
  if (asker == askers.end()) return;
  PastWord told = form_of(word);
  told.ticket = asker->second.ticket;
  self->send(asker->second.who, std::move(told));
  if (word.outcome != actors::PastOutcome::progress) askers.erase(asker);
}

void past_state::forget_asker(std::uint64_t ticket, const caf::actor_addr& asker) {
  std::erase_if(
      held, [&](const auto& each) { return each.first.ticket == ticket && each.second.address() == asker; });
  for (auto each = askers.begin(); each != askers.end();) {
    const auto entry = each++;
    if (entry->second.ticket != ticket || entry->second.who.address() != asker) continue;
    self->send(deps->cache, actors::forget_atom_v, entry->first);
    askers.erase(entry);
  }
}

void past_state::lost(const caf::actor_addr& address) {
  if (owner && address == owner.address()) return stop();
  if (deps->cache && address == deps->cache.address()) {
    deps->logger.error("past: the cache has ended: what this node remembers is not told any more");
    deps->cache = nullptr;
    for (const auto& [ticket, asker] : std::exchange(askers, {}))
      self->send(asker.who,
                 PastWord{asker.ticket, static_cast<std::uint8_t>(actors::PastOutcome::unavailable),
                          "what keeps what cameras saw has come to an end", 0, false});
    return;
  }
  watched.erase(address);
  std::erase_if(held, [&](const auto& each) { return each.second.address() == address; });
  std::vector<std::uint64_t> left;
  for (const auto& [ticket, asker] : askers)
    if (asker.who.address() == address) left.push_back(asker.ticket);
  for (const std::uint64_t ticket : left) forget_asker(ticket, address);
  for (const auto& [id, nodes] : asked)
    if (const auto node = nodes.find(address); node != nodes.end()) desk->silent(id, node->second);
  settle();
}

void past_state::settle() {
  PastDesk::News news = desk->take_news();
  for (const PastDesk::News::Wanted& wanted : news.wanted) {
    if (!owner) {
      desk->nodes(wanted.id, {}, {deps->node});
      continue;
    }
    self->request(owner, deps->patience, stand_atom_v)
        .then([this,
               wanted](const NodeStandingPtr& standing) { look_around(wanted.id, wanted.what, *standing); },
              [this, wanted](const caf::error&) {
                desk->nodes(wanted.id, {}, {deps->node});
                settle();
              });
  }
  for (const PastDesk::News::Clips& clips : news.clips) {
    self->request(owner, deps->patience, stand_atom_v)
        .then([this,
               clips](const NodeStandingPtr& standing) { look_for_clips(clips.id, clips.wish, *standing); },
              [this, clips](const caf::error&) {
                desk->clip_nodes(clips.id, {});
                settle();
              });
  }
  for (const PastDesk::News::Order& order : news.orders) {
    commit(book->order(order.erasure, order.what), [this, id = order.id](const auto& result) {
      const auto* const failure = std::get_if<cluster::RegistryFailure>(&result);
      desk->ordered(id, failure == nullptr ? "" : failure->text);
      settle();
    });
  }
  for (const std::uint64_t id : news.over) {
    const auto nodes = asked.extract(id);
    if (!nodes) continue;
    for (const auto& [address, node] : nodes.mapped())
      if (const auto there = caf::actor_cast<past_actor>(address)) self->send(there, past_atom_v, id);
  }
  for (actors::PastReply& reply : news.replies) {
    const auto listener = listeners.find(reply.ticket);
    if (listener == listeners.end()) continue;
    const bool is_last = reply.outcome != actors::PastOutcome::progress;
    self->send(listener->second, std::make_shared<const actors::PastReply>(std::move(reply)));
    if (is_last) listeners.erase(listener);
  }
}

void past_state::tick() {
  desk->tick();
  settle();
  register_here();
  look_at_erasures();
  self->delayed_send(self, kPastTick, actors::tick_atom_v);
}

void past_state::stop() {
  for (const auto& [ticket, listener] : std::exchange(listeners, {})) {
    auto reply = std::make_shared<actors::PastReply>();
    reply->ticket = ticket;
    reply->outcome = actors::PastOutcome::unavailable;
    reply->text = "this node ends";
    self->send(listener, actors::PastReplyPtr(std::move(reply)));
  }
  mirror.reset();
  self->quit();
}

past_actor::behavior_type past(past_actor::stateful_pointer<past_state> self, PastDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->set_down_handler([self](const caf::down_msg& down) { self->state.lost(down.source); });
  self->state.deps.emplace(std::move(deps));
  self->state.start();
  return {
      [self](stand_atom) {
        self->state.owner = caf::actor_cast<node_actor>(self->current_sender());
        self->monitor(self->state.owner);
      },
      [self](const actors::PastRequestPtr& request) {
        self->state.listeners.insert_or_assign(
            request->ticket, caf::actor_cast<actors::past_listener_actor>(self->current_sender()));
        self->state.desk->take(*request);
        self->state.settle();
      },
      [self](actors::forget_atom, std::uint64_t ticket) {
        self->state.listeners.erase(ticket);
        self->state.desk->forget(ticket);
        self->state.settle();
      },
      [self](const PastAsk& ask) {
        self->state.answer(ask, caf::actor_cast<past_actor>(self->current_sender()));
      },
      [self](past_atom, std::uint64_t ticket) {
        self->state.forget_asker(ticket, caf::actor_cast<caf::actor_addr>(self->current_sender()));
      },
      [self](const PastWord& word) {
        self->state.hear(word, caf::actor_cast<caf::actor_addr>(self->current_sender()));
      },
      [self](const actors::PastReplyPtr& word) { self->state.hear(*word); },
      [](const Piece& piece) { piece.run(); },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::fleet
