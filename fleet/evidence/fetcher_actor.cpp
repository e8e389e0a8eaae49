#include "fleet/evidence/fetcher_actor.h"

#include <utility>

#include "actors/messages/shell.h"
#include "fleet/messages/node_standing.h"

namespace vigil::fleet {
namespace {

using What = EvidenceReply::What;

constexpr std::chrono::milliseconds kFetcherTick{500};
/// Between attempts to send a part that found no credit, and how many there are.
constexpr std::chrono::milliseconds kSendAgain{50};
constexpr std::uint32_t kAttempts = 80;

EvidenceReplyPtr reply(What what, std::string text) {
  EvidenceReply made{what, {}, {}};
  (what == What::found ? made.bytes : made.reason) = std::move(text);
  return std::make_shared<const EvidenceReply>(std::move(made));
}

std::string why_absent(const std::vector<std::string>& silent, std::size_t strangers) {
  if (silent.empty() && strangers > 0)
    return "no node that this one asks has it, and " + std::to_string(strangers) +
           (strangers > 1 ? " others were" : " other was") + " not asked by this node: ask a gateway";
  if (silent.empty())
    return "no node that is there has it: it has gone for age or room, or its node is gone, and it with that";
  std::string names;
  for (const std::string& node : silent) names += (names.empty() ? "" : ", ") + node;
  return "no node that answers has it, and " + names +
         (silent.size() > 1 ? " do not answer: it may be there" : " does not answer: it may be there");
}

std::string why_too_large(const std::string& node, std::uint64_t size, std::uint64_t most) {
  return "node " + node + " has it, and it is larger than what is fetched: " + std::to_string(size) +
         " bytes, of " + std::to_string(most) + " at most";
}

}  // namespace

std::uint64_t fetcher_state::find(const std::string& file) const {
  return folder->size(file).value_or(0);
}

void fetcher_state::send_part(const EvidenceWish& wish) {
  if (deps->bulk == nullptr) return;
  const auto size = folder->size(wish.name);
  auto bytes = size ? folder->read(wish.name, wish.offset, deps->limits.chunk) : std::nullopt;
  const cluster::BulkSent sent = deps->bulk->send(
      wish.node,
      write(EvidenceChunk{wish.ticket, wish.offset, size.value_or(0), cluster::Bytes(bytes.value_or(""))}));
  if (sent || wish.attempt >= kAttempts) return;
  // There is no credit, or no stream yet; whoever asked stops waiting by itself.
  EvidenceWish again = wish;
  ++again.attempt;
  self->delayed_send(self, kSendAgain, fetch_atom_v, std::move(again));
}

EvidenceReplyPtr fetcher_state::fetch_here(const std::string& file) const {
  if (!is_evidence_name(file)) return reply(What::refused, "this is no name of a still or a clip");
  if (const std::uint64_t size = find(file); size > 0) {
    if (!desk->may(size)) return reply(What::failed, why_too_large(deps->node, size, deps->limits.bytes));
    auto bytes = folder->read(file, 0, size);
    if (bytes && bytes->size() == size) return reply(What::found, std::move(*bytes));
  }
  return nullptr;
}

fetcher_state::Waiters* fetcher_state::waiting_for(const std::string& file) {
  for (auto& [search, asked] : searches)
    if (asked.name == file) return &asked.waiters;
  for (auto& [ticket, fetch] : fetches)
    if (fetch.name == file) return &fetch.waiters;
  return nullptr;
}

std::size_t fetcher_state::waiting() const {
  std::size_t waiting = 0;
  for (const auto& [search, asked] : searches) waiting += asked.waiters.size();
  for (const auto& [ticket, fetch] : fetches) waiting += fetch.waiters.size();
  return waiting;
}

void fetcher_state::answer(Waiters& waiters, const EvidenceReplyPtr& reply) {
  for (Waiter& waiter : waiters) {
    if (waiter.who) self->demonitor(waiter.who);
    waiter.promise.deliver(reply);
  }
  waiters.clear();
}

void fetcher_state::fetch(const std::string& file, Promise promise, const caf::strong_actor_ptr& who) {
  if (auto known = fetch_here(file)) {
    promise.deliver(std::move(known));
    return;
  }
  Waiters* const joined = waiting_for(file);
  if (waiting() >= deps->waiters ||
      (joined == nullptr && searches.size() + fetches.size() >= deps->at_once)) {
    promise.deliver(reply(What::busy, "others are being fetched: ask again in a moment"));
    return;
  }
  Waiter waiter{std::move(promise), caf::actor_cast<caf::actor_addr>(who)};
  if (waiter.who) self->monitor(waiter.who);
  if (joined != nullptr) {
    joined->push_back(std::move(waiter));
    return;
  }
  const std::uint64_t search = ++last_search;
  Search& asked = searches[search];
  asked.name = file;
  asked.waiters.push_back(std::move(waiter));
  self->request(owner, deps->patience, stand_atom_v)
      .then([this, search](const NodeStandingPtr& standing) { look_around(search, *standing); },
            [this, search](const caf::error&) { look_around(search, {}); });
}

void fetcher_state::leave(const caf::actor_addr& who) {
  const auto is_his = [&](const Waiter& waiter) { return waiter.who == who; };
  for (auto& [search, asked] : searches) std::erase_if(asked.waiters, is_his);
  for (auto& [ticket, fetch] : fetches) std::erase_if(fetch.waiters, is_his);
  std::erase_if(searches, [](const auto& entry) { return entry.second.waiters.empty(); });
  std::erase_if(fetches, [this](const auto& entry) {
    const bool is_unwanted = entry.second.waiters.empty();
    if (is_unwanted) desk->drop(entry.first);
    return is_unwanted;
  });
}

void fetcher_state::look_around(std::uint64_t search, const NodeStanding& standing) {
  const auto entry = searches.find(search);
  // Nobody waits for it any more.
  if (entry == searches.end()) return;
  Search& asked = entry->second;
  // One more, so that nothing ends before all were asked.
  asked.nodes_left = 1;
  for (const auto& [node, record] : standing.nodes) {
    if (node == deps->node || !record.roles.contains(cluster::NodeRole::camera)) continue;
    const auto way = standing.ways.find(node);
    if (standing.strangers.contains(node)) {
      ++asked.strangers;
      continue;
    }
    if (way == standing.ways.end()) {
      asked.silent.push_back(node);
      continue;
    }
    asked.ways.insert(*way);
    ++asked.nodes_left;
    self->request(way->second, deps->patience, find_atom_v, asked.name)
        .then([this, search, node = node](std::uint64_t size) { found(search, node, size); },
              [this, search, node = node](const caf::error&) { found(search, node, std::nullopt); });
  }
  found(search, "", 0);
}

void fetcher_state::found(std::uint64_t search, const std::string& node, std::optional<std::uint64_t> size) {
  const auto entry = searches.find(search);
  // Another one had it, or nobody waits for it any more.
  if (entry == searches.end()) return;
  Search& asked = entry->second;
  if (!size) asked.silent.push_back(node);
  if (size && desk->may(*size)) return begin(search, node, *size);
  if (size && *size > 0) asked.too_large = why_too_large(node, *size, deps->limits.bytes);
  if (--asked.nodes_left > 0) return;
  answer(asked.waiters, asked.too_large.empty()
                            ? reply(What::absent, why_absent(asked.silent, asked.strangers))
                            : reply(What::failed, asked.too_large));
  searches.erase(entry);
}

void fetcher_state::begin(std::uint64_t search, const std::string& node, std::uint64_t size) {
  auto asked = searches.extract(search);
  const std::uint64_t ticket = desk->begin(node, size);
  fetches[ticket] = {asked.mapped().name, node, asked.mapped().ways.at(node),
                     std::move(asked.mapped().waiters)};
  ask_for(ticket, 0);
}

void fetcher_state::ask_for(std::uint64_t ticket, std::uint64_t offset) {
  const Fetch& fetch = fetches.at(ticket);
  self->send(fetch.way, fetch_atom_v, EvidenceWish{deps->node, fetch.name, ticket, offset, 0});
}

void fetcher_state::take(const BulkArrival& arrival) {
  const auto chunk = read_chunk(arrival.received.message);
  if (!chunk) {
    deps->logger.error("fetcher: ignored bytes of node {} that make no sense", arrival.node);
    return;
  }
  auto step = desk->take(arrival.node, *chunk);
  if (!step) return;
  if (step->next) return ask_for(chunk->ticket, *step->next);
  auto fetch = fetches.extract(chunk->ticket);
  if (!step->done)
    return answer(fetch.mapped().waiters,
                  reply(What::failed, "node " + arrival.node + " has it no longer: " + step->failure));
  std::string bytes;
  bytes.swap(*step->done);
  answer(fetch.mapped().waiters, reply(What::found, std::move(bytes)));
}

void fetcher_state::tick() {
  for (const auto& [ticket, failure] : desk->take_overdue()) {
    auto fetch = fetches.extract(ticket);
    answer(fetch.mapped().waiters,
           reply(What::failed, "node " + fetch.mapped().node + " has it, and " + failure));
  }
  self->delayed_send(self, kFetcherTick, actors::tick_atom_v);
}

void fetcher_state::end() {
  // Whoever waits for what never comes would hold up the process's end.
  const auto ended = reply(What::failed, "this node ends");
  for (auto& [search, asked] : searches) answer(asked.waiters, ended);
  for (auto& [ticket, fetch] : fetches) answer(fetch.waiters, ended);
  searches.clear();
  fetches.clear();
  self->quit();
}

fetcher_actor::behavior_type fetcher(fetcher_actor::stateful_pointer<fetcher_state> self, FetcherDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->set_down_handler([self](const caf::down_msg& down) {
    if (down.source == self->state.owner.address()) return self->state.end();
    self->state.leave(down.source);
  });
  self->state.folder.emplace(deps.dir);
  self->state.desk.emplace(deps.limits, deps.clock);
  self->state.deps.emplace(std::move(deps));
  self->send(self, actors::tick_atom_v);
  return {
      [self](stand_atom) {
        self->state.owner = caf::actor_cast<node_actor>(self->current_sender());
        self->monitor(self->state.owner);
      },
      [self](find_atom, const std::string& file) { return self->state.find(file); },
      [self](fetch_atom, const EvidenceWish& wish) { self->state.send_part(wish); },
      [self](const BulkArrivalPtr& arrival) { self->state.take(*arrival); },
      [self](fetch_atom, const std::string& file) -> caf::result<EvidenceReplyPtr> {
        // The promise takes it along.
        const caf::strong_actor_ptr who = self->current_sender();
        auto promise = self->make_response_promise<EvidenceReplyPtr>();
        self->state.fetch(file, promise, who);
        return promise;
      },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->state.end(); },
  };
}

}  // namespace vigil::fleet
