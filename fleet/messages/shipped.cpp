#include "fleet/messages/shipped.h"

#include <chrono>

#include "actors/alerts/closing.h"
#include "actors/messages/topic.h"
#include "base/fnv1a.h"

namespace vigil::fleet {

std::string series_key(std::string_view topic) {
  const auto name = actors::read_topic(topic);
  if (!name) return {};
  return std::string(name->kind == actors::TopicKind::process ? topic : name->camera);
}

bool is_own_news(std::string_view series) {
  return actors::kind_of(series) == actors::TopicKind::process;
}

std::uint64_t fingerprint(std::string_view body) {
  const std::uint64_t hash = base::fnv1a(body);
  return hash == 0 ? 1 : hash;
}

std::string unit_name(const std::string& topic, std::uint64_t sequence, const std::string& body) {
  if (const auto name = actors::event_name(body)) return name->episode + '#' + std::to_string(name->number);
  return topic + '#' + std::to_string(sequence);
}

ShippedEvent shipped(const actors::OutboxEvent& event, std::uint64_t unit) {
  return {event.topic, event.sequence,
          std::chrono::duration_cast<std::chrono::nanoseconds>(event.time.time_since_epoch()).count(),
          event.body, unit};
}

actors::OutboxEvent kept(const ShippedEvent& event) {
  actors::OutboxEvent result;
  result.topic = event.topic;
  result.sequence = event.sequence;
  result.time = base::Clock::WallTime(
      std::chrono::duration_cast<base::Clock::WallTime::duration>(std::chrono::nanoseconds(event.time)));
  result.body = event.body;
  return result;
}

std::size_t size_of(const ShippedEvent& event) {
  return event.topic.size() + event.body.size() + 64;
}

}  // namespace vigil::fleet
