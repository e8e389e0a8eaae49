// What the outboxes have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

inline std::string new_outbox_identity() {
  std::random_device random;
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x", random(), random());
  return text.data();
}

inline bool is_wanted(const ReplayQuery& query, std::string_view topic, base::Clock::WallTime time) {
  return (!query.since || time >= *query.since) &&
         std::any_of(query.topics.begin(), query.topics.end(),
                     [&](const std::string& prefix) { return topic.starts_with(prefix); });
}

inline std::size_t size_of(const OutboxEvent& event) {
  return event.topic.size() + event.body.size();
}

/// The last sequence number of each topic once it goes on there and these events are kept. Throws
/// std::invalid_argument if one does not follow the one before it, and no continuation says that it does not.
inline std::map<std::string, std::uint64_t> sequences_after(const Outbox& outbox,
                                                            std::span<const OutboxEvent> events,
                                                            std::span<const Continuation> topics = {}) {
  std::map<std::string, std::uint64_t> last;
  /// Of topics that go on more than once, where they do so after that.
  std::map<std::string, std::deque<std::uint64_t>> jumps;
  for (const Continuation& topic : topics)
    if (!last.try_emplace(topic.topic, topic.last).second) jumps[topic.topic].push_back(topic.last);
  const auto jump = [&](const std::string& topic, std::uint64_t& at) {
    const auto next = jumps.find(topic);
    if (next == jumps.end() || next->second.empty() || next->second.front() < at)
      throw std::invalid_argument("outbox: a sequence with a gap");
    at = next->second.front();
    next->second.pop_front();
  };
  for (const OutboxEvent& event : events) {
    const auto [entry, first] = last.try_emplace(event.topic, 0);
    if (first) entry->second = outbox.last_sequence(event.topic);
    while (event.sequence != entry->second + 1) jump(event.topic, entry->second);
    entry->second = event.sequence;
  }
  for (auto& [topic, rest] : jumps)
    while (!rest.empty()) jump(topic, last.at(topic));
  return last;
}

/// Whether an answer with so many events and bytes has no room for this one.
inline bool is_full(const ReplayQuery& query, std::size_t events, std::size_t bytes,
                    const OutboxEvent& event) {
  return events > 0 && (events >= query.max_events || bytes + size_of(event) > query.max_bytes);
}

}  // namespace vigil::actors
