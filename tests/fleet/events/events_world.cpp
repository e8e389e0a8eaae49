#include "tests/fleet/events/events_world.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>

#include <nlohmann/json.hpp>

namespace vigil::fleet::testing {
namespace {

constexpr std::int64_t kPatience = 300;
constexpr std::size_t kMost = 24;
constexpr std::size_t kStagedBytes = 1 << 20;

std::string body_of(const std::string& unit, std::uint64_t fence, std::uint64_t sequence, bool ends) {
  const std::size_t dash = unit.rfind('-');
  return nlohmann::json{{"type", "dev.vigil.alert.v1"},
                        {"id", unit},
                        {"time", "2026-01-01T00:00:00Z"},
                        {"sequence", sequence},
                        {"fence", fence},
                        {"data", {{"episode", unit.substr(0, dash)}, {"phase", ends ? "end" : "new"}}}}
      .dump();
}

std::uint64_t fence_in(const std::string& body) {
  return nlohmann::json::parse(body).at("fence");
}
std::string unit_in(const std::string& body) {
  return nlohmann::json::parse(body).at("id");
}

}  // namespace

struct World::Gateway {
  std::string name;
  bool alive = false;
  /// Whether it hears of the registry, and the registry of it.
  bool cut_off = false;
  std::string incarnation;
  std::unique_ptr<actors::Outbox> disk;
  std::unique_ptr<GatewayDesk> desk;
  std::unique_ptr<GatewayJoining> joining;
  std::size_t view = 0;
  std::uint64_t runs = 0;
  /// Of its joinings.
  std::uint64_t generation = 0;
  std::uint64_t looked = 0;
  std::string looked_of;
  std::string traced;
  bool was_true = false;
};

struct World::Maker {
  std::string name;
  std::size_t number = 0;
  bool alive = false;
  std::unique_ptr<MakerDesk> desk;
  std::size_t view = 0;
  std::uint64_t runs = 0;
  Author disk;
  /// As far as it knows.
  std::map<std::string, std::uint64_t> owned;
  std::set<std::string> open;
  std::map<std::string, std::deque<std::string>> waiting;
  std::uint64_t published = 0;
};

World::World(const Options& options) : options_(options), random_(options.seed) {
  for (int i = 0; i < options.gateways; ++i) {
    gateways_.push_back(std::make_unique<Gateway>());
    gateways_.back()->name = "g" + std::to_string(i);
    gateways_.back()->disk = actors::make_memory_outbox();
  }
  for (int i = 0; i < options.makers; ++i) {
    makers_.push_back(std::make_unique<Maker>());
    makers_.back()->name = "m" + std::to_string(i);
    makers_.back()->number = static_cast<std::size_t>(i);
  }
}

World::~World() = default;

void World::after(std::int64_t ms, std::function<void()> what) {
  later_.push({clock_.ms + ms, order_++, std::move(what)});
}

/// For a seed that fails: VIGIL_TRACE=1 tells what happened.
void World::trace(const std::string& what) {
  static const bool wanted = std::getenv("VIGIL_TRACE") != nullptr;
  if (wanted) std::cerr << clock_.ms << ' ' << what << '\n';
}

void World::fail(const std::string& what) {
  if (!failure_) failure_ = std::to_string(clock_.ms) + " ms: " + what;
}

// ---- the registry

void World::put(const std::string& gateway, const GatewaySeen& seen) {
  GatewayView next = truth();
  next[gateway] = seen;
  history_.push_back(std::move(next));
}

void World::remove(const std::string& gateway) {
  GatewayView next = truth();
  if (next.erase(gateway) > 0) history_.push_back(std::move(next));
}

bool World::is_true(const Gateway& gateway) const {
  if (!gateway.alive || gateway.desk->mode() != GatewayMode::serving) return false;
  const auto there = truth().find(gateway.name);
  return there != truth().end() && there->second.born == gateway.desk->born();
}

std::size_t World::serving() const {
  return static_cast<std::size_t>(
      std::count_if(gateways_.begin(), gateways_.end(), [this](const auto& each) { return is_true(*each); }));
}

// ---- the net

bool World::is_cut(const std::string& one, const std::string& other) {
  return cuts_.contains({one, other}) || cuts_.contains({other, one});
}

void World::carry(const std::string& from, const std::string& to, const std::function<void()>& what) {
  ++counts_.messages;
  if (is_cut(from, to)) return;
  const int copies = calm_ ? 1 : chance(loss_) ? 0 : chance(twice_) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    // Now and then one is on its way for very long.
    const std::int64_t way = calm_ ? 2 : chance(0.03) ? static_cast<std::int64_t>(dice(2000)) : 1 + static_cast<std::int64_t>(dice(static_cast<std::uint64_t>(delay_)));
    after(way, what);
  }
}

// ---- gateways

/// As a node tells it: its own record only once it is of this run.
GatewayView World::view_of(const Gateway& gateway) const {
  GatewayView view = history_[gateway.view];
  const auto own = view.find(gateway.name);
  if (own != view.end() && !own->second.born.starts_with(gateway.incarnation + '@')) view.erase(own);
  return view;
}

void World::start(Gateway& gateway) {
  gateway.alive = true;
  gateway.incarnation = gateway.name + "r" + std::to_string(++gateway.runs);
  gateway.view = history_.size() - 1;
  ++gateway.generation;
  gateway.desk = std::make_unique<GatewayDesk>(
      GatewayDesk::Options{gateway.name, {.staged_bytes = kStagedBytes, .staged_of_series = 256}}, *gateway.disk);
  gateway.joining = std::make_unique<GatewayJoining>(
      GatewayJoining::Options{.name = gateway.name,
                              .token =
                                  [this, &gateway] {
                                    if (options_.mistake == Mistake::tokens_last) return gateway.name + "-token";
                                    const std::string number = std::to_string(++tokens_);
                                    return std::string(8 - number.size(), '0') + number + gateway.name;
                                  },
                              .pause = base::Duration(50)},
      *gateway.desk, clock_);
  gateway.looked = 0;
  gateway.looked_of.clear();
  gateway.was_true = false;
  const auto there = truth().find(gateway.name);
  const std::uint64_t created = there == truth().end() ? ++revision_ : there->second.created;
  put(gateway.name, {gateway.incarnation + "@" + std::to_string(created), created, false});
  trace(gateway.name + " starts, has " + std::to_string(gateway.desk->has()));
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
    const std::string born =
        gateway.incarnation + "@" +
        (options_.mistake == Mistake::records_are_alike && !gateway.desk->born().empty()
             ? gateway.desk->born().substr(gateway.desk->born().find('@') + 1)
             : std::to_string(created));
    // As it was when it wrote it last.
    put(gateway.name, {born, created, gateway.desk->mode() == GatewayMode::serving});
    // What others saw in between it sees as others do, or all at once.
    if (options_.mistake == Mistake::records_are_alike || chance(0.5)) gateway.view = history_.size() - 1;
  });
}

void World::poke(Gateway& gateway) {
  if (!gateway.alive || failure_) return;
  if (!gateway.cut_off && gateway.view + 1 < history_.size() && (calm_ || chance(0.3)))
    gateway.view = calm_ ? history_.size() - 1 : gateway.view + 1 + dice(history_.size() - gateway.view - 1);
  gateway.joining->see(view_of(gateway));
  if (gateway.joining->wants_empty_outbox()) {
    gateway.disk = actors::make_memory_outbox();
    const std::size_t view = gateway.view;
    const std::uint64_t runs = gateway.runs;
    const std::string incarnation = gateway.incarnation;
    // The same process and record, another outbox.
    start(gateway);
    history_.pop_back();
    gateway.view = view;
    gateway.runs = runs;
    gateway.incarnation = incarnation;
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
        commit.units.back().places.push_back({event.topic, event.sequence, 0});
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
  PeerAnswer answer = gateway.joining->answer(question);
  const Mistake mistake = options_.mistake;
  if (mistake == Mistake::staged_not_copied)
    for (SeriesCopy& copy : answer.series) copy.staged.clear();
  if (mistake == Mistake::serves_too_soon && question.kind == PeerQuestionKind::series) answer.newest = 0;
  if (mistake == Mistake::admitted_by_one && question.kind == PeerQuestionKind::admit && gateway.desk->mode() != GatewayMode::serving)
    gateway.desk->forget(question.from);
  return answer;
}

// ---- makers

void World::start(Maker& maker) {
  maker.alive = true;
  ++maker.runs;
  maker.view = history_.size() - 1;
  const std::string run = options_.mistake == Mistake::sessions_are_alike ? "" : std::to_string(maker.runs);
  maker.desk = std::make_unique<MakerDesk>(MakerDesk::Options{.node = maker.name,
                                                              .session = maker.name + "s" + run,
                                                              .offer_events = 4,
                                                              .offer_bytes = 4000,
                                                              .claims = 2,
                                                              .most = kMost,
                                                              .pause = base::Duration(40)},
                                           clock_);
  maker.published = maker.disk.next - 1;
  // What is left waits until its series is taken over.
  for (auto& [position, entry] : maker.disk.unacknowledged) entry.position = 0;
}

/// Whether it has nothing of former owners in its memory alone: one failure more, of a gateway's disk, is more
/// than what is promised.
bool World::may_stop(const Maker& maker) const {
  for (const std::string& series : maker.open) {
    const auto claimed = claimed_.find(series);
    if (claimed == claimed_.end()) continue;
    for (const auto& [topic, last] : claimed->second.last)
      for (const auto& gateway : gateways_)
        if (is_true(*gateway) && gateway->desk->books().last(topic) < last &&
            gateway->desk->books().staged(topic, last) == nullptr)
          return false;
  }
  return true;
}

void World::stop(Maker& maker, bool with_disk) {
  ++counts_.crashes;
  maker.alive = false;
  trace(maker.name + " stops" + (with_disk ? " and its disk is gone" : ""));
  maker.desk.reset();
  maker.open.clear();
  // What it had not written is gone with its memory, what it kept with its disk.
  std::erase_if(owed_, [&](const auto& owed) {
    if (owed.second != maker.name) return false;
    return with_disk || std::any_of(maker.waiting.begin(), maker.waiting.end(), [&](const auto& waiting) {
             return std::find(waiting.second.begin(), waiting.second.end(), owed.first) != waiting.second.end();
           });
  });
  maker.waiting.clear();
  if (with_disk) maker.disk = {};
}

void World::poke(Maker& maker) {
  if (!maker.alive || failure_) return;
  if (maker.view + 1 < history_.size() && (calm_ || chance(0.2)))
    maker.view = calm_ ? history_.size() - 1 : maker.view + 1 + dice(history_.size() - maker.view - 1);
  maker.desk->see(history_[maker.view]);
  for (const actors::SeriesBooks& books : maker.desk->take_books()) take_over(maker, books);
  for (const auto& [series, fence] : maker.owned)
    if (!maker.waiting[series].empty() && !maker.open.contains(series)) maker.desk->claim(series, fence);
  write(maker);
  for (MakerDesk::Ask& each : maker.desk->take_asks()) {
    std::string text;
    for (const SeriesClaim& claim : each.talk.claims) text += " claim " + claim.series + '@' + std::to_string(claim.fence);
    for (const SeriesOffer& offer : each.talk.offers)
      for (const ShippedEvent& event : offer.events) text += " offer " + event.topic + std::to_string(event.sequence);
    for (const SeriesCommit& commit : each.talk.commits)
      for (const CommitUnit& unit : commit.units)
        text += std::string(unit.over_gap ? " over a gap" : "") + " commit " + unit.places.front().topic +
                std::to_string(unit.places.front().sequence);
    trace(maker.name + " to " + each.gateway + " #" + std::to_string(each.talk.number) + " all " +
          std::to_string(each.talk.all.size()) + text);
    const std::uint64_t run = maker.runs;
    const std::string to = each.gateway;
    const std::uint64_t number = each.talk.number;
    carry(maker.name, to, [this, &maker, run, to, talk = each.talk] {
      for (auto& gateway : gateways_) {
        if (gateway->name != to || !gateway->alive) continue;
        const GatewayTalk answer = ask(*gateway, talk);
        look(*gateway);
        carry(to, maker.name, [this, &maker, run, to, answer] {
          if (!maker.alive || maker.runs != run) return;
          maker.desk->heard(to, answer);
          poke(maker);
        });
      }
    });
    after(kPatience, [this, &maker, run, to, number] {
      if (!maker.alive || maker.runs != run) return;
      maker.desk->failed(to, number);
      poke(maker);
    });
  }
  for (const MakerDesk::Lost& lost : maker.desk->take_lost()) {
    const auto owned = maker.owned.find(lost.series);
    if (owned == maker.owned.end() || owned->second != lost.fence) continue;
    if (owners_.at(lost.series).fence == lost.fence && owners_.at(lost.series).maker == maker.number)
      fail(maker.name + " owns " + lost.series + " and is told that another one does");
    maker.owned.erase(owned);
    maker.open.erase(lost.series);
    maker.waiting.erase(lost.series);
    std::erase_if(maker.disk.unacknowledged,
                  [&](const auto& entry) { return series_key(entry.second.event.topic) == lost.series; });
  }
  const std::uint64_t published = maker.desk->published();
  std::erase_if(maker.disk.unacknowledged, [&](const auto& entry) {
    return entry.second.position != 0 && entry.first <= published && entry.first <= maker.published;
  });
  if (maker.desk->waiting() > kMost + 300) fail(maker.name + " has more under way than it may have");
}

void World::take_over(Maker& maker, const actors::SeriesBooks& books) {
  const auto owned = maker.owned.find(books.camera);
  if (owned == maker.owned.end() || owned->second != books.fence) return;
  Author& disk = maker.disk;
  const bool goes_on = disk.fences.contains(books.camera) && disk.fences.at(books.camera) >= books.since;
  std::map<std::string, std::uint64_t> last;
  for (const actors::OutboxEvent& event : books.last) last[event.topic] = event.sequence;
  std::vector<Author::Entry> left;
  for (auto entry = disk.unacknowledged.begin(); entry != disk.unacknowledged.end();) {
    if (series_key(entry->second.event.topic) != books.camera) {
      ++entry;
      continue;
    }
    // Of a process before this one: told again. What this one has published goes on by itself.
    const bool is_old = entry->second.position == 0;
    if (!goes_on) {
      entry = disk.unacknowledged.erase(entry);
    } else if (is_old) {
      left.push_back(entry->second);
      entry = disk.unacknowledged.erase(entry);
    } else {
      ++entry;
    }
  }
  for (const std::string& topic : {"alert/t/" + books.camera + "/r/", "topic/n/t/" + books.camera + "/r/"}) {
    std::uint64_t& own = disk.last[topic];
    own = goes_on ? std::max(own, last[topic]) : last[topic];
  }
  for (Author::Entry& entry : left) {
    entry.position = disk.next++;
    entry.event.position = entry.position;
    disk.unacknowledged[entry.position] = entry;
  }
  disk.fences[books.camera] = books.fence;
  maker.open.insert(books.camera);
  std::string text;
  for (const auto& [topic, sequence] : last) text += ' ' + topic + std::to_string(sequence);
  trace(maker.name + " takes over " + books.camera + " fence " + std::to_string(books.fence) + " since " +
        std::to_string(books.since) + (goes_on ? " goes on:" : " anew:") + text);
  Claimed& claimed = claimed_[books.camera];
  if (books.fence >= claimed.fence) claimed = {books.fence, goes_on ? books.since : books.fence, last};
}

void World::make(Maker& maker, const std::string& series) {
  if (!maker.owned.contains(series) || maker.waiting[series].size() >= 8) return;
  ++counts_.events;
  const std::string unit = "e" + std::to_string(++names_) + "-0";
  maker.waiting[series].push_back(unit);
  const Owner& owner = owners_.at(series);
  if (owner.maker == maker.number && owner.fence == maker.owned.at(series)) owed_[unit] = maker.name;
}

/// Numbers what waits, and publishes what the desk has room for.
void World::write(Maker& maker) {
  Author& disk = maker.disk;
  for (auto& [series, units] : maker.waiting) {
    while (maker.open.contains(series) && !units.empty()) {
      std::vector<std::string> topics = {"alert/t/" + series + "/r/"};
      if (names_ % 3 == 0 || units.size() % 2 == 0) topics.push_back("topic/n/t/" + series + "/r/");
      for (const std::string& topic : topics) {
        Author::Entry entry;
        entry.position = disk.next++;
        entry.unit = units.front();
        entry.event.position = entry.position;
        entry.event.topic = topic;
        entry.event.sequence = ++disk.last[topic];
        entry.event.body = body_of(units.front(), maker.owned.at(series), entry.event.sequence, false);
        disk.unacknowledged[entry.position] = std::move(entry);
      }
      units.pop_front();
    }
  }
  for (auto entry = disk.unacknowledged.upper_bound(maker.published);
       entry != disk.unacknowledged.end() && maker.desk->has_room();) {
    std::vector<actors::OutboxEvent> copies;
    const std::string unit = entry->second.unit;
    for (; entry != disk.unacknowledged.end() && entry->second.unit == unit; ++entry) {
      copies.push_back(entry->second.event);
      maker.published = entry->first;
    }
    maker.desk->publish(copies);
  }
}

void World::assign(const std::string& series, std::size_t number, std::uint64_t fence) {
  const auto before = owners_.find(series);
  if (before != owners_.end() && (before->second.maker != number || before->second.fence != fence)) {
    ++counts_.moves;
    if (before->second.maker != number) {
      // What the former owner had is its own from now on.
      const std::string name = makers_[before->second.maker]->name;
      std::erase_if(owed_, [&](const auto& owed) {
        const auto& waiting = makers_[before->second.maker]->waiting[series];
        if (owed.second != name) return false;
        if (std::find(waiting.begin(), waiting.end(), owed.first) != waiting.end()) return true;
        for (const auto& [position, entry] : makers_[before->second.maker]->disk.unacknowledged)
          if (entry.unit == owed.first && series_key(entry.event.topic) == series) return true;
        return false;
      });
    }
  }
  owners_[series] = {number, fence};
  trace(series + " is m" + std::to_string(number) + "'s, fence " + std::to_string(fence));
  const auto tell = [this, series, number, fence] {
    Maker& maker = *makers_[number];
    if (!maker.alive) return;
    std::uint64_t& own = maker.owned[series];
    if (own >= fence) return;
    own = fence;
    maker.open.erase(series);
    poke(maker);
  };
  if (calm_) {
    tell();
  } else {
    after(static_cast<std::int64_t>(dice(200)), tell);
  }
}

// ---- what happens

void World::mischief() {
  Gateway& gateway = *gateways_[dice(gateways_.size())];
  Maker& maker = *makers_[dice(makers_.size())];
  const std::size_t others = serving() - (is_true(gateway) ? 1 : 0);
  switch (dice(16)) {
    case 0:
    case 1:
      // One that serves, at least, stays.
      if (gateway.alive && others > 0) stop(gateway, chance(0.5));
      break;
    case 2:
    case 3:
    case 4:
      if (!gateway.alive) start(gateway);
      break;
    case 5:
      if (gateway.alive && !gateway.cut_off && others > 0) lose_lease(gateway);
      break;
    case 6:
      // The power is gone everywhere.
      if (std::all_of(gateways_.begin(), gateways_.end(),
                      [this](const auto& each) { return !each->alive || is_true(*each); })) {
        std::vector<Gateway*> all;
        for (auto& each : gateways_)
          if (each->alive) all.push_back(each.get());
        for (Gateway* each : all) stop(*each, false);
        for (Gateway* each : all) start(*each);
      }
      break;
    case 7:
    case 8:
      if (maker.alive) {
        if (may_stop(maker)) stop(maker, chance(0.4));
      } else {
        start(maker);
        // It is told again what it has.
        maker.owned.clear();
        for (const auto& [series, owner] : owners_)
          if (owner.maker == maker.number) assign(series, owner.maker, owner.fence);
      }
      break;
    case 9:
    case 10:
    case 11: {
      const std::string series = "c" + std::to_string(dice(static_cast<std::uint64_t>(options_.series)));
      assign(series, dice(makers_.size()), ++fences_);
      break;
    }
    case 12:
    case 13: {
      const auto name = [this] {
        const std::uint64_t i = dice(gateways_.size() + makers_.size());
        return i < gateways_.size() ? gateways_[i]->name : makers_[i - gateways_.size()]->name;
      };
      const std::pair cut{name(), name()};
      cuts_.insert(cut);
      after(static_cast<std::int64_t>(dice(600)), [this, cut] { cuts_.erase(cut); });
      break;
    }
    default:
      break;
  }
}

std::optional<std::string> World::run() {
  for (int i = 0; i < options_.series; ++i) {
    const std::string series = "c" + std::to_string(i);
    assign(series, dice(makers_.size()), ++fences_);
  }
  for (auto& maker : makers_) start(*maker);
  for (auto& gateway : gateways_) start(*gateway);
  for (int step = 0; step < options_.steps && !failure_; ++step) {
    if (step > 20 && chance(0.25)) mischief();
    if (chance(0.7)) {
      Maker& maker = *makers_[dice(makers_.size())];
      if (maker.alive) make(maker, "c" + std::to_string(dice(static_cast<std::uint64_t>(options_.series))));
    }
    // As ticks of the shells are.
    for (auto& gateway : gateways_) poke(*gateway);
    for (auto& maker : makers_) poke(*maker);
    const std::int64_t until = clock_.ms + 25;
    while (!later_.empty() && later_.top().at <= until && !failure_) {
      const Later next = later_.top();
      later_.pop();
      clock_.ms = std::max(clock_.ms, next.at);
      next.what();
    }
    clock_.ms = until;
  }
  if (!failure_) settle_down();
  return failure_;
}

bool World::is_quiet() const {
  for (const auto& gateway : gateways_)
    if (!is_true(*gateway)) return false;
  for (const auto& maker : makers_) {
    if (maker->desk->waiting() > 0) return false;
    for (const auto& [series, units] : maker->waiting)
      if (!units.empty()) return false;
  }
  return true;
}

/// Nothing goes wrong any more: what is owed has to come.
void World::settle_down() {
  calm_ = true;
  cuts_.clear();
  for (auto& gateway : gateways_)
    if (!gateway->alive) start(*gateway);
  for (auto& maker : makers_)
    if (!maker->alive) {
      start(*maker);
      maker->owned.clear();
    }
  for (const auto& [series, owner] : owners_) assign(series, owner.maker, owner.fence);
  for (const auto& [series, owner] : owners_) make(*makers_[owner.maker], series);
  for (int step = 0; step < 800 && !failure_; ++step) {
    for (auto& gateway : gateways_) poke(*gateway);
    for (auto& maker : makers_) poke(*maker);
    const std::int64_t until = clock_.ms + 25;
    while (!later_.empty() && later_.top().at <= until && !failure_) {
      const Later next = later_.top();
      later_.pop();
      clock_.ms = std::max(clock_.ms, next.at);
      next.what();
    }
    clock_.ms = until;
    if (later_.empty() && is_quiet()) break;
  }
  if (failure_) return;
  if (!is_quiet()) {
    std::string who;
    for (const auto& gateway : gateways_)
      if (!is_true(*gateway)) who += ' ' + gateway->name + " (" + gateway->joining->trouble() + ")";
    for (const auto& maker : makers_)
      if (maker->desk->waiting() > 0 || maker->desk->claiming() > 0)
        who += ' ' + maker->name + " (" + std::to_string(maker->desk->waiting()) + " under way, " +
               std::to_string(maker->desk->claiming()) + " claims)";
    return fail("it does not come to rest:" + who);
  }
  for (const auto& [unit, maker] : owed_)
    if (!seen_units_.contains(unit)) fail("event " + unit + " of " + maker + " was never published");
  for (const auto& gateway : gateways_) look_at_all(*gateway);
  // The same events at the same numbers, without a hole, everywhere.
  for (const auto& [place, seen] : visible_)
    if (place.second > 1 && !visible_.contains({place.first, place.second - 1}))
      fail(place.first + ' ' + std::to_string(place.second) + " has none before it");
  for (const auto& gateway : gateways_)
    for (const actors::OutboxEvent& event : gateway->disk->last_events(std::numeric_limits<std::size_t>::max() / 2)) {
      const auto seen = visible_.find({event.topic, event.sequence});
      if (seen == visible_.end() || seen->second.body != event.body)
        fail(gateway->name + " has another " + event.topic + ' ' + std::to_string(event.sequence));
    }
}

// ---- what has to hold

bool World::has(const Gateway& gateway, const std::string& topic, std::uint64_t sequence,
                const std::string& body) const {
  if (gateway.desk->books().last(topic) >= sequence) {
    const auto position = gateway.disk->position_of(topic, sequence);
    if (!position) return false;
    actors::ReplayQuery query;
    query.topics = {topic};
    query.after = *position - 1;
    query.max_events = 1;
    return gateway.disk->replay(query).events.front().body == body;
  }
  const ShippedEvent* const staged = gateway.desk->books().staged(topic, sequence);
  return staged != nullptr && staged->body == body;
}

/// What a gateway shows that it did not show before.
void World::look(Gateway& gateway) {
  if (!gateway.alive || failure_) return;
  if (gateway.desk->books().staged_bytes() > kStagedBytes) fail(gateway.name + " has staged more than it may");
  if (gateway.desk->mode() != GatewayMode::serving) {
    gateway.was_true = false;
    return;
  }
  if (gateway.looked_of != gateway.disk->identity()) gateway.looked = 0;
  gateway.looked_of = gateway.disk->identity();
  actors::ReplayQuery query;
  query.topics = {""};
  query.after = gateway.looked;
  query.max_events = 100'000;
  query.max_bytes = query.max_scanned = 100'000'000;
  for (const actors::OutboxEvent& event : gateway.disk->replay(query).events) {
    gateway.looked = event.position;
    const auto [seen, is_new] =
        visible_.try_emplace({event.topic, event.sequence}, Seen{event.body, fence_in(event.body)});
    if (is_new)
      trace(gateway.name + " shows " + event.topic + std::to_string(event.sequence) + " fence " +
            std::to_string(seen->second.fence) + ' ' + unit_in(event.body));
    if (seen->second.body != event.body)
      fail(gateway.name + " shows another event as " + event.topic + ' ' + std::to_string(event.sequence));
    if (!is_new) continue;
    ++counts_.visible;
    seen_units_.insert(unit_in(event.body));
    const auto claimed = claimed_.find(series_key(event.topic));
    if (claimed != claimed_.end() && seen->second.fence < claimed->second.since) {
      const auto last = claimed->second.last.find(event.topic);
      if (last == claimed->second.last.end() || last->second < event.sequence)
        fail(gateway.name + " shows " + event.topic + ' ' + std::to_string(event.sequence) + " of fence " +
             std::to_string(seen->second.fence) + " after the claim of fence " +
             std::to_string(claimed->second.fence));
    }
    for (const auto& other : gateways_)
      if (is_true(*other) && !has(*other, event.topic, event.sequence, event.body))
        fail(gateway.name + " shows " + event.topic + ' ' + std::to_string(event.sequence) + ", which " +
             other->name + " has not");
  }
  if (!std::exchange(gateway.was_true, is_true(gateway)) && is_true(gateway)) look_at_all(gateway);
}

void World::look_at_all(const Gateway& gateway) {
  for (const auto& [place, seen] : visible_)
    if (!has(gateway, place.first, place.second, seen.body))
      fail(gateway.name + " serves, and has not " + place.first + ' ' + std::to_string(place.second));
}

}  // namespace vigil::fleet::testing
