// The part of a world that its makers are.
#include <algorithm>
#include <utility>

#include "tests/fleet/events/events_world_parts.h"

namespace vigil::fleet::testing {

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
  maker.published = maker.disk.next - 1;
  // What is left waits until its series is taken over.
  for (auto& [position, entry] : maker.disk.unacknowledged) entry.position = 0;
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
    std::erase_if(maker.disk.unacknowledged,
                  [&](const auto& entry) { return series_key(entry.second.event.topic) == lost.series; });
  }
  if (maker.desk->waiting() > kMost + 300) fail(maker.name + " has more under way than it may have");
  // Another thread looks at it, when it comes to that: after it has taken a series over, as likely as before.
  if (!calm_ && chance(0.5)) return;
  const std::uint64_t published = maker.desk->published();
  std::erase_if(maker.disk.unacknowledged, [&](const auto& entry) {
    return entry.second.position != 0 && entry.first <= published && entry.first <= maker.published;
  });
}

void World::take_over(Maker& maker, const actors::SeriesBooks& books) {
  const auto owned = maker.owned.find(books.camera);
  if (owned == maker.owned.end() || owned->second != books.fence) return;
  Author& disk = maker.disk;
  std::map<std::string, std::uint64_t> last;
  for (const actors::OutboxEvent& event : books.last) last[event.topic] = event.sequence;
  const bool had_it = disk.fences.contains(books.camera) && disk.fences.at(books.camera) >= books.since;
  bool goes_on = had_it;
  // As an alerts desk does: what was told as done, and is in no books, never reached anybody.
  std::map<std::string, std::uint64_t> in_hand;
  for (const auto& [position, entry] : disk.unacknowledged)
    if (entry.event.sequence > last[entry.event.topic]) ++in_hand[entry.event.topic];
  for (const std::string& topic : {"alert/t/" + books.camera + "/r/", "topic/n/t/" + books.camera + "/r/"})
    goes_on = goes_on && std::max(disk.last[topic], last[topic]) == last[topic] + in_hand[topic];
  std::vector<Author::Entry> left;
  for (auto entry = disk.unacknowledged.begin(); entry != disk.unacknowledged.end();) {
    if (series_key(entry->second.event.topic) != books.camera) {
      ++entry;
      continue;
    }
    // Of a process before this one: told again. What this one has published goes on by itself.
    const bool is_old = entry->second.position == 0;
    if (!goes_on) {
      // Behind what a former owner had staged, and what is gone with more than one failure.
      if (had_it && owed_.erase(entry->second.unit) > 0) ++counts_.given_up;
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

}  // namespace vigil::fleet::testing
