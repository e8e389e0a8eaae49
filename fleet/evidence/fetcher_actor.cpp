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

}  // namespace

std::uint64_t fetcher_state::find(const std::string& file) const {
  const auto size = folder->size(file);
  return size && desk->may(*size) ? *size : 0;
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
    auto bytes = folder->read(file, 0, size);
    if (bytes && bytes->size() == size) return reply(What::found, std::move(*bytes));
  }
  if (searches.size() + fetches.size() >= deps->at_once)
    return reply(What::busy, "others are being fetched: ask again in a moment");
  return nullptr;
}

void fetcher_state::fetch(const std::string& file, Promise promise) {
  if (auto known = fetch_here(file)) {
    promise.deliver(std::move(known));
    return;
  }
  const std::uint64_t search = ++last_search;
  searches[search] = {file, std::move(promise), {}, 0, {}, 0};
  self->request(owner, deps->patience, stand_atom_v)
      .then([this, search](const NodeStandingPtr& standing) { look_around(search, *standing); },
            [this, search](const caf::error&) { look_around(search, {}); });
}

void fetcher_state::look_around(std::uint64_t search, const NodeStanding& standing) {
  Search& asked = searches.at(search);
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
  // Another one had it.
  if (entry == searches.end()) return;
  Search& asked = entry->second;
  if (!size) asked.silent.push_back(node);
  if (size && *size > 0) return begin(search, node, *size);
  if (--asked.nodes_left > 0) return;
  asked.promise.deliver(reply(What::absent, why_absent(asked.silent, asked.strangers)));
  searches.erase(entry);
}

void fetcher_state::begin(std::uint64_t search, const std::string& node, std::uint64_t size) {
  auto asked = searches.extract(search);
  if (!desk->may(size)) {
    asked.mapped().promise.deliver(reply(What::failed, "it is larger than what is fetched"));
    return;
  }
  const std::uint64_t ticket = desk->begin(node, size);
  fetches[ticket] = {asked.mapped().name, node, asked.mapped().ways.at(node),
                     std::move(asked.mapped().promise)};
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
  fetch.mapped().promise.deliver(
      step->done ? reply(What::found, std::move(*step->done))
                 : reply(What::failed, "node " + arrival.node + " has it no longer: " + step->failure));
}

void fetcher_state::tick() {
  for (const std::uint64_t ticket : desk->take_overdue()) {
    auto fetch = fetches.extract(ticket);
    fetch.mapped().promise.deliver(
        reply(What::failed, "node " + fetch.mapped().node + " has it, and did not send it in time"));
  }
  self->delayed_send(self, kFetcherTick, actors::tick_atom_v);
}

void fetcher_state::end() {
  // Whoever waits for what never comes would hold up the process's end.
  const auto ended = reply(What::failed, "this node ends");
  for (auto& [search, asked] : searches) asked.promise.deliver(ended);
  for (auto& [ticket, fetch] : fetches) fetch.promise.deliver(ended);
  searches.clear();
  fetches.clear();
  self->quit();
}

fetcher_actor::behavior_type fetcher(fetcher_actor::stateful_pointer<fetcher_state> self, FetcherDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->set_down_handler([self](const caf::down_msg&) { self->state.end(); });
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
        auto promise = self->make_response_promise<EvidenceReplyPtr>();
        self->state.fetch(file, promise);
        return promise;
      },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->state.end(); },
  };
}

}  // namespace vigil::fleet
