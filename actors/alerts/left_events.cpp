#include "actors/alerts/left_events.h"

#include <iterator>
#include <utility>

#include "actors/messages/topic.h"

namespace vigil::actors {

LeftEvents::LeftEvents(const Outbox& outbox) {
  // A part at a time: there may be a day's.
  constexpr std::size_t kAtOnce = 4096;
  std::uint64_t after = 0;
  for (bool more = true; more;) {
    const std::vector<OutboxEvent> events = outbox.unacknowledged_after(after, kAtOnce);
    more = events.size() == kAtOnce;
    for (const OutboxEvent& event : events) {
      after = event.position;
      auto name = series_of(event.topic);
      (name ? places_[std::move(*name)] : others_).push_back({event.position, event.time});
    }
  }
  end_ = after == 0 ? 0 : outbox.last_position();
}

std::vector<std::string> LeftEvents::series() const {
  std::vector<std::string> names;
  names.reserve(places_.size());
  for (const auto& [name, places] : places_) names.push_back(name);
  return names;
}

std::vector<OutboxEvent> LeftEvents::read(const std::string& series, const Outbox& outbox) const {
  std::vector<OutboxEvent> events;
  const auto entry = places_.find(series);
  if (entry == places_.end()) return events;
  ReplayQuery one;
  one.topics = {""};
  one.max_events = one.max_scanned = 1;
  for (const Place& place : entry->second) {
    one.after = place.position - 1;
    Replay found = outbox.replay(one);
    if (!found.events.empty() && found.events.front().position == place.position)
      events.push_back(std::move(found.events.front()));
  }
  return events;
}

std::vector<std::uint64_t> LeftEvents::take(const std::string& series) {
  std::vector<std::uint64_t> positions;
  const auto entry = places_.extract(series);
  if (!entry) return positions;
  for (const Place& place : entry.mapped()) positions.push_back(place.position);
  return positions;
}

LeftEvents::Old LeftEvents::take_before(base::Clock::WallTime time) {
  Old old;
  const auto take_from = [&](std::vector<Place>& places) {
    return std::erase_if(places, [&](const Place& place) {
      if (place.time >= time) return false;
      old.positions.push_back(place.position);
      return true;
    });
  };
  for (auto entry = places_.begin(); entry != places_.end();) {
    if (const std::size_t taken = take_from(entry->second)) old.by_series[entry->first] = taken;
    entry = entry->second.empty() ? places_.erase(entry) : std::next(entry);
  }
  take_from(others_);
  return old;
}

}  // namespace vigil::actors
