// The part of a world that its makers are.
#include <algorithm>
#include <limits>
#include <utility>

#include "actors/alerts/handover.h"
#include "tests/fleet/events/events_world_parts.h"

namespace vigil::fleet::testing {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

std::vector<actors::OutboxEvent> waiting_of(const actors::Outbox& disk, const std::string& series) {
  std::vector<actors::OutboxEvent> waiting = disk.unacknowledged(kAll);
  std::erase_if(waiting, [&](const auto& event) { return series_key(event.topic) != series; });
  return waiting;
}

std::set<std::string> units_in(const std::vector<actors::OutboxEvent>& events) {
  std::set<std::string> units;
  for (const actors::OutboxEvent& event : events) units.insert(unit_in(event.body));
  return units;
}

void acknowledge(actors::Outbox& disk, const std::vector<actors::OutboxEvent>& events) {
  std::vector<std::uint64_t> positions;
  for (const actors::OutboxEvent& event : events) positions.push_back(event.position);
  if (!positions.empty()) disk.acknowledge(positions);
}

}  // namespace

void World::start(Maker& maker) {
  maker.alive = true;
  ++maker.runs;
  maker.view = history_.size() - 1;
  const std::string run = std::to_string(maker.runs);
  maker.desk = std::make_unique<MakerDesk>(MakerDesk::Options{.node = maker.name,
                                                              .session = maker.name + "s" + run,
                                                              .offer_events = 4,
                                                              .offer_bytes = 4000,
                                                              .claims = 2,
                                                              .most = kMost,
                                                              .pause = base::Duration(40)},
                                           clock_);
  // What is left waits until its series is taken over.
  maker.published = maker.left_behind = maker.disk->last_position();
  maker.lived.clear();
}

/// Whether it has nothing of former owners in its memory alone: one failure more, of a gateway's disk, is
/// more than what is promised.
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
             return std::find(waiting.second.begin(), waiting.second.end(), owed.first) !=
                    waiting.second.end();
           });
  });
  maker.waiting.clear();
  if (with_disk) maker.disk = actors::make_memory_outbox();
}

void World::poke(Maker& maker) {
  if (!maker.alive || failure_) return;
  if (maker.view + 1 < history_.size() && (calm_ || chance(0.2)))
    maker.view = calm_ ? history_.size() - 1 : maker.view + 1 + dice(history_.size() - maker.view - 1);
  maker.desk->see(history_[maker.view]);
  for (const actors::SeriesBooks& books : maker.desk->take_books()) take_over(maker, books);
  for (const auto& [series, fence] : maker.owned)
    if (!maker.waiting[series].empty() && !maker.open.contains(series)) {
      maker.desk->have(series);
      maker.desk->claim(series, fence);
    }
  write(maker);
  for (MakerDesk::Ask& each : maker.desk->take_asks()) {
    std::string text;
    for (const SeriesClaim& claim : each.talk.claims)
      text += " claim " + claim.series + '@' + std::to_string(claim.fence);
    for (const SeriesOffer& offer : each.talk.offers)
      for (const ShippedEvent& event : offer.events)
        text += " offer " + event.topic + std::to_string(event.sequence);
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
    acknowledge(*maker.disk, waiting_of(*maker.disk, lost.series));
  }
  if (maker.desk->waiting() > kMost + 300) fail(maker.name + " has more under way than it may have");
  // Another thread looks at it, when it comes to that: after it has taken a series over, as likely as before.
  if (!calm_ && chance(0.5)) return;
  const std::uint64_t published = std::min(maker.desk->published(), maker.published);
  std::vector<actors::OutboxEvent> done = maker.disk->unacknowledged_after(maker.left_behind, kAll);
  std::erase_if(done, [&](const auto& event) { return event.position > published; });
  acknowledge(*maker.disk, done);
}

void World::take_over(Maker& maker, const actors::SeriesBooks& books) {
  const auto owned = maker.owned.find(books.camera);
  if (owned == maker.owned.end() || owned->second != books.fence) return;
  actors::Outbox& disk = *maker.disk;
  std::map<std::string, std::uint64_t> last;
  for (const actors::OutboxEvent& event : books.last) last[event.topic] = event.sequence;
  const std::vector<actors::OutboxEvent> unacknowledged = disk.unacknowledged(kAll);
  const std::vector<actors::OutboxEvent> newest = disk.last_events(1);
  const std::map<std::string, std::string> notes = disk.notes();
  const std::map<std::string, std::uint64_t> tenures = actors::tenures_in(notes);
  const auto tenure = tenures.find(books.camera);
  const bool had_it = tenure != tenures.end() && tenure->second >= books.since;
  const std::set<std::string> before = units_in(waiting_of(disk, books.camera));
  const actors::Handover handover = actors::hand_over(
      books, {.tenure = tenure == tenures.end() ? 0 : tenure->second,
              .lived = maker.lived.contains(books.camera),
              .unacknowledged = unacknowledged,
              .left_behind = maker.left_behind,
              .notes = notes,
              .last = newest,
              .last_sequence = [&](const std::string& topic) { return disk.last_sequence(topic); }});
  disk.continue_from(handover.topics, handover.events, handover.notes);
  const bool goes_on = handover.goes_on;
  const std::set<std::string> left = units_in(waiting_of(disk, books.camera));
  if (!handover.committed.empty()) disk.acknowledge(handover.committed);
  for (const std::string& unit : before)
    // Behind what a former owner had staged, and what is gone with more than one failure.
    if (!left.contains(unit) && owed_.erase(unit) > 0 && had_it) ++counts_.given_up;
  maker.lived.insert(books.camera);
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
  actors::Outbox& disk = *maker.disk;
  for (auto& [series, units] : maker.waiting) {
    while (maker.open.contains(series) && !units.empty()) {
      std::vector<std::string> topics = {"alert/t/" + series + "/r/"};
      if (names_ % 3 == 0 || units.size() % 2 == 0) topics.push_back("topic/n/t/" + series + "/r/");
      std::vector<actors::OutboxEvent> copies;
      for (const std::string& topic : topics) {
        actors::OutboxEvent& copy = copies.emplace_back();
        copy.topic = topic;
        copy.sequence = disk.last_sequence(topic) + 1;
        copy.body = body_of(units.front(), maker.owned.at(series), copy.sequence, false);
      }
      disk.append(copies);
      units.pop_front();
    }
  }
  const std::vector<actors::OutboxEvent> events = disk.unacknowledged_after(maker.published, kAll);
  for (auto event = events.begin(); event != events.end() && maker.desk->waiting() < kMost;) {
    std::vector<actors::OutboxEvent> copies;
    const std::string unit = unit_in(event->body);
    for (; event != events.end() && unit_in(event->body) == unit; ++event) copies.push_back(*event);
    maker.published = copies.back().position;
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
      const std::set<std::string> kept = units_in(waiting_of(*makers_[before->second.maker]->disk, series));
      std::erase_if(owed_, [&](const auto& owed) {
        const auto& waiting = makers_[before->second.maker]->waiting[series];
        if (owed.second != name) return false;
        if (std::find(waiting.begin(), waiting.end(), owed.first) != waiting.end()) return true;
        return kept.contains(owed.first);
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

}  // namespace vigil::fleet::testing
