// The part of a world that its gateways are.
#include <utility>

#include "tests/fleet/events/events_world_parts.h"

namespace vigil::fleet::testing {

/// As a node tells it: its own record only once it is of this run.
GatewayView World::view_of(const Gateway& gateway) const {
  GatewayView view = history_[gateway.view];
  const auto own = view.find(gateway.name);
  if (own != view.end() && !own->second.born.starts_with(gateway.incarnation + '@')) view.erase(own);
  return view;
}

std::string World::token(const Gateway& gateway) {
  if (options_.mistake == Mistake::tokens_last) return gateway.name + "-token";
  const std::string number = std::to_string(++tokens_);
  return std::string(8 - number.size(), '0') + number + gateway.name;
}

void World::start(Gateway& gateway, bool is_readable) {
  gateway.alive = true;
  gateway.incarnation = gateway.name + "r" + std::to_string(++gateway.runs);
  gateway.view = history_.size() - 1;
  gateway.promise = {};
  if (is_readable) {
    open(gateway);
  } else {
    spoil(gateway);
  }
  const auto there = truth().find(gateway.name);
  const std::uint64_t created = there == truth().end() ? ++revision_ : there->second.created;
  put(gateway.name, {gateway.incarnation + "@" + std::to_string(created), created, false});
  trace(gateway.name + " starts" +
        (is_readable ? ", has " + std::to_string(gateway.desk->has()) : " without its outbox"));
}

void World::open(Gateway& gateway) {
  ++gateway.generation;
  if (gateway.joining) gateway.promise = gateway.joining->promise();
  gateway.joining.reset();
  gateway.desk = std::make_unique<GatewayDesk>(
      GatewayDesk::Options{gateway.name, {.staged_bytes = kStagedBytes, .staged_of_series = 256}},
      *gateway.disk);
  gateway.joining = std::make_unique<GatewayJoining>(
      GatewayJoining::Options{
          .name = gateway.name,
          .token = [this, &gateway](const std::string& /*after*/) { return token(gateway); },
          .pause = base::Duration(50),
          .patience = base::Duration(1500),
          .unreadable = base::Duration(kUnreadable)},
      *gateway.desk, clock_, std::exchange(gateway.promise, {}));
  gateway.looked = 0;
  gateway.looked_of.clear();
  gateway.was_true = false;
}

void World::spoil(Gateway& gateway) {
  ++counts_.unreadable;
  ++gateway.generation;
  if (gateway.joining) gateway.promise = gateway.joining->promise();
  gateway.joining.reset();
  gateway.desk.reset();
  gateway.was_true = false;
  gateway.mends_at = clock_.ms + static_cast<std::int64_t>(dice(4 * kUnreadable));
  gateway.again = clock_.ms;
}

/// Whoever knew it is told that it has nothing any more, until it is heard.
void World::withdraw(Gateway& gateway) {
  const GatewayView view = view_of(gateway);
  const auto own = view.find(gateway.name);
  if (own == view.end()) return;
  PeerQuestion question;
  question.kind = PeerQuestionKind::state;
  question.from = gateway.name;
  question.born = own->second.born;
  question.token = token(gateway);
  for (const auto& other : gateways_) {
    const auto there = view.find(other->name);
    if (other.get() == &gateway || there == view.end()) continue;
    question.to_born = there->second.born;
    carry(gateway.name, other->name, [this, &asked = *other, question] {
      if (!asked.alive) return;
      ask(asked, question);
      look(asked);
    });
  }
}

void World::stop(Gateway& gateway, bool with_disk) {
  ++counts_.crashes;
  trace(gateway.name + " stops" + (with_disk ? " and its disk is gone" : ""));
  gateway.alive = false;
  gateway.cut_off = false;
  gateway.joining.reset();
  gateway.desk.reset();
  if (with_disk) gateway.disk = actors::make_memory_outbox();
  // Its lease ends later.
  const std::uint64_t run = gateway.runs;
  after(50 + static_cast<std::int64_t>(dice(400)), [this, &gateway, run] {
    if (!gateway.alive && gateway.runs == run) remove(gateway.name);
  });
}

/// The registry takes it for gone; it does not hear of that, until it does, and puts its record again.
void World::lose_lease(Gateway& gateway) {
  gateway.cut_off = true;
  trace(gateway.name + " loses its lease");
  remove(gateway.name);
  const std::uint64_t run = gateway.runs;
  after(30 + static_cast<std::int64_t>(dice(400)), [this, &gateway, run] {
    if (!gateway.alive || gateway.runs != run) return;
    gateway.cut_off = false;
    const std::uint64_t created = ++revision_;
    const std::string before = gateway.desk ? gateway.desk->born() : "";
    const std::string born = gateway.incarnation + "@" +
                             (options_.mistake == Mistake::records_are_alike && !before.empty()
                                  ? before.substr(before.find('@') + 1)
                                  : std::to_string(created));
    // As it was when it wrote it last.
    put(gateway.name, {born, created, gateway.desk && gateway.desk->mode() == GatewayMode::serving});
    // What others saw in between it sees as others do, or all at once.
    if (options_.mistake == Mistake::records_are_alike || chance(0.5)) gateway.view = history_.size() - 1;
  });
}

void World::poke(Gateway& gateway) {
  if (!gateway.alive || failure_) return;
  if (!gateway.cut_off && gateway.view + 1 < history_.size() && (calm_ || chance(0.3)))
    gateway.view = calm_ ? history_.size() - 1 : gateway.view + 1 + dice(history_.size() - gateway.view - 1);
  if (!gateway.desk) {
    const auto own = truth().find(gateway.name);
    if (!gateway.cut_off && own != truth().end() && own->second.serves &&
        own->second.born.starts_with(gateway.incarnation + '@'))
      put(gateway.name, {own->second.born, own->second.created, false});
    if (clock_.ms < gateway.again) return;
    gateway.again = clock_.ms + kAgain;
    withdraw(gateway);
    if (clock_.ms < gateway.mends_at) return;
    open(gateway);
    trace(gateway.name + " has its outbox again, with " + std::to_string(gateway.desk->has()));
  }
  gateway.joining->see(view_of(gateway));
  if (gateway.joining->wants_empty_outbox()) {
    // The same process and record, another outbox.
    gateway.disk = actors::make_memory_outbox();
    open(gateway);
    gateway.joining->see(view_of(gateway));
    trace(gateway.name + " begins with an empty outbox");
  }
  for (GatewayJoining::Ask& each : gateway.joining->take_asks()) {
    const std::string to = each.to;
    const std::uint64_t number = each.question.number;
    const auto is_same = [&gateway, generation = gateway.generation] {
      return gateway.alive && gateway.generation == generation;
    };
    carry(gateway.name, to, [this, &gateway, to, question = each.question, is_same] {
      for (auto& other : gateways_) {
        if (other->name != to || !other->alive) continue;
        const PeerAnswer answer = ask(*other, question);
        look(*other);
        carry(to, gateway.name, [this, &gateway, to, answer, is_same] {
          if (!is_same()) return;
          gateway.joining->heard(to, answer);
          look(gateway);
          poke(gateway);
        });
      }
    });
    after(kPatience, [this, &gateway, to, number, is_same] {
      if (!is_same()) return;
      gateway.joining->failed(to, number);
      poke(gateway);
    });
  }
  const std::string trouble = gateway.joining->trouble() + ' ' + gateway.desk->token();
  if (trouble != gateway.traced) trace(gateway.name + ": " + trouble);
  gateway.traced = trouble;
  // It tells what it is.
  if (!gateway.cut_off) {
    const auto own = truth().find(gateway.name);
    if (own != truth().end() && own->second.born == gateway.desk->born()) {
      GatewaySeen seen = own->second;
      seen.serves = gateway.desk->mode() == GatewayMode::serving;
      if (seen.serves && !own->second.serves) ++counts_.joined;
      if (!(seen == own->second)) put(gateway.name, seen);
    }
  }
  look(gateway);
}

GatewayTalk World::ask(Gateway& gateway, MakerTalk talk) {
  if (!gateway.desk) {
    GatewayTalk away;
    away.number = talk.number;
    away.verdict = TalkVerdict::away;
    return away;
  }
  GatewayDesk& desk = *gateway.desk;
  const Mistake mistake = options_.mistake;
  if (mistake == Mistake::peers_not_named)
    for (const auto& [name, peer] : desk.peers()) talk.all.push_back(peer);
  if (mistake == Mistake::commits_early)
    for (const SeriesOffer& offer : talk.offers) {
      SeriesCommit commit{offer.series, offer.fence, {}};
      std::uint64_t unit = 0;
      for (const ShippedEvent& event : offer.events) {
        if (std::exchange(unit, event.unit) != event.unit) commit.units.emplace_back();
        commit.units.back().places.push_back({event.topic, event.sequence, fingerprint(event.body)});
      }
      talk.commits.push_back(std::move(commit));
    }
  if (mistake == Mistake::no_fences) {
    // Each series by itself, as whoever has it.
    GatewayTalk all;
    MakerTalk one = talk;
    one.offers.clear();
    one.commits.clear();
    all = desk.answer(one);
    one.claims.clear();
    const auto as_owner = [&](auto& part) {
      const std::uint64_t fence = part.fence;
      if (const SeriesTenure* tenure = desk.books().tenure(part.series)) {
        one.maker = tenure->maker;
        one.session = tenure->session;
        part.fence = tenure->fence;
      }
      return fence;
    };
    for (SeriesOffer offer : talk.offers) {
      const std::uint64_t fence = as_owner(offer);
      one.offers = {offer};
      for (SeriesAnswer answer : desk.answer(one).offers) {
        answer.fence = fence;
        all.offers.push_back(answer);
      }
    }
    one.offers.clear();
    for (SeriesCommit commit : talk.commits) {
      const std::uint64_t fence = as_owner(commit);
      one.commits = {commit};
      for (SeriesAnswer answer : desk.answer(one).commits) {
        answer.fence = fence;
        all.commits.push_back(answer);
      }
    }
    return all;
  }
  GatewayTalk answer = desk.answer(talk);
  if (mistake == Mistake::books_without_staged)
    for (ClaimAnswer& claim : answer.claims) claim.staged.clear();
  if (mistake == Mistake::peers_not_named) answer.peers.clear();
  return answer;
}

PeerAnswer World::ask(Gateway& gateway, PeerQuestion question) {
  if (!gateway.desk) return answer_without_outbox(question, gateway.name, view_of(gateway), gateway.promise);
  PeerAnswer answer = gateway.joining->answer(question);
  const Mistake mistake = options_.mistake;
  if (mistake == Mistake::staged_not_copied)
    for (SeriesCopy& copy : answer.series) copy.staged.clear();
  if (mistake == Mistake::first_has_the_most) {
    answer.served = "~";
    answer.without.clear();
  }
  if (mistake == Mistake::serves_too_soon && question.kind == PeerQuestionKind::series) answer.newest = 0;
  return answer;
}

}  // namespace vigil::fleet::testing
