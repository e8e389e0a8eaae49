#include "actors/alerts/outbox.h"

#include <algorithm>

namespace vigil::actors {

std::uint64_t Outbox::continue_from(std::span<const Continuation> /*topics*/,
                                    std::span<const OutboxEvent> /*events*/,
                                    std::span<const OutboxNote> /*notes*/) {
  throw std::logic_error("outbox: it gives all numbers itself");
}

std::vector<OutboxEvent> Outbox::unacknowledged_after(std::uint64_t position, std::size_t limit) const {
  std::vector<OutboxEvent> events = unacknowledged(std::numeric_limits<std::size_t>::max());
  std::erase_if(events, [&](const OutboxEvent& event) { return event.position <= position; });
  events.resize(std::min(events.size(), limit));
  return events;
}

bool has_event(const Outbox& outbox, const OutboxEvent& event) {
  const auto position = outbox.position_of(event.topic, event.sequence);
  if (!position) return false;
  ReplayQuery query;
  query.topics = {event.topic};
  query.after = *position - 1;
  query.max_events = 1;
  const std::vector<OutboxEvent> found = outbox.replay(query).events;
  return std::any_of(found.begin(), found.end(), [&](const OutboxEvent& each) {
    return each.topic == event.topic && each.sequence == event.sequence && each.body == event.body;
  });
}

}  // namespace vigil::actors
