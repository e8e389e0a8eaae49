#include "actors/alerts/outbox.h"

#include <algorithm>

namespace vigil::actors {

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
