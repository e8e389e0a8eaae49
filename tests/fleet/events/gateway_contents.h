// What a gateway has, committed or staged, for those who look whether it is all there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/alerts/outbox.h"
#include "fleet/events/gateway_books.h"

namespace vigil::fleet::testing {

/// The body of an event of a topic; nothing if it is not there. `outbox` is that of the books.
inline std::optional<std::string> body_at(const GatewayBooks& books, const actors::Outbox& outbox,
                                          const std::string& topic, std::uint64_t sequence) {
  if (books.last(topic) < sequence) {
    const ShippedEvent* const staged = books.staged(topic, sequence);
    return staged == nullptr ? std::nullopt : std::optional(staged->body);
  }
  const auto position = outbox.position_of(topic, sequence);
  if (!position) return std::nullopt;
  actors::ReplayQuery query;
  query.topics = {topic};
  query.after = *position - 1;
  query.max_events = 1;
  return outbox.replay(query).events.front().body;
}

}  // namespace vigil::fleet::testing
