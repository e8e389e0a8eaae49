#include "fleet/events/merged_books.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "actors/alerts/closing.h"
#include "actors/alerts/open_episodes.h"
#include "fleet/messages/shipped.h"

namespace vigil::fleet {
namespace {

struct Topic {
  /// Committed by all, and by some; the last event of those.
  std::uint64_t everywhere = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t somewhere = 0;
  ShippedEvent last;
  /// What was staged somewhere, by sequence: of two, the one with the higher fence.
  std::map<std::uint64_t, StagedEvent> staged;
};

/// The number within its episode of the event that a note has.
std::uint64_t number_of(const std::string& note) {
  const nlohmann::json read = nlohmann::json::parse(note, nullptr, /*allow_exceptions=*/false);
  if (!read.is_object() || !read.contains("event") || !read.at("event").is_string()) return 0;
  const auto name = actors::event_name(read.at("event").get<std::string>());
  return name ? name->number : 0;
}

}  // namespace

MergedBooks merge_books(const std::string& series, std::uint64_t fence,
                        const std::vector<ClaimAnswer>& answers) {
  MergedBooks merged;
  merged.books.camera = series;
  merged.books.fence = fence;
  std::map<std::string, Topic> topics;
  std::map<std::string, std::string> notes;
  for (const ClaimAnswer& answer : answers) {
    merged.books.previous = std::max(merged.books.previous, answer.previous);
    merged.books.since = std::max(merged.books.since, answer.others + 1);
    for (const ShippedEvent& event : answer.last) topics[event.topic];
    for (const StagedEvent& staged : answer.staged) topics[staged.event.topic];
    for (const auto& [key, value] : answer.notes) {
      const auto [note, is_new] = notes.try_emplace(key, value);
      if (!is_new && number_of(note->second) < number_of(value)) note->second = value;
    }
  }
  for (auto& [name, topic] : topics) {
    for (const ClaimAnswer& answer : answers) {
      const auto last = std::ranges::find(answer.last, name, &ShippedEvent::topic);
      const std::uint64_t committed = last == answer.last.end() ? 0 : last->sequence;
      topic.everywhere = std::min(topic.everywhere, committed);
      if (committed > topic.somewhere) {
        topic.somewhere = committed;
        topic.last = *last;
      }
    }
    for (const ClaimAnswer& answer : answers)
      for (const StagedEvent& staged : answer.staged) {
        if (staged.event.topic != name || staged.event.sequence <= topic.everywhere) continue;
        const auto [there, is_new] = topic.staged.try_emplace(staged.event.sequence, staged);
        if (!is_new && there->second.fence < staged.fence) there->second = staged;
      }
    // What was committed somewhere is what was staged everywhere.
    if (topic.somewhere > topic.everywhere && !topic.last.body.empty()) {
      StagedEvent& there = topic.staged[topic.somewhere];
      if (there.event.body != topic.last.body) there = {there.fence, topic.last};
    }
    std::uint64_t next = topic.everywhere + 1;
    for (auto entry = topic.staged.begin(); entry != topic.staged.end();) {
      if (entry->first == next || entry->first <= topic.somewhere) {
        next = entry->first + 1;
        ++entry;
      } else {
        entry = topic.staged.erase(entry, topic.staged.end());
      }
    }
  }
  // Copies together, in the order in which they were made; a topic's own order first of all.
  std::map<std::string, std::vector<StagedEvent>> units;
  for (const auto& [name, topic] : topics)
    for (const auto& [sequence, staged] : topic.staged)
      units[unit_name(name, sequence, staged.event.body)].push_back(staged);
  std::vector<const std::vector<StagedEvent>*> order;
  order.reserve(units.size());
  for (const auto& [name, copies] : units) order.push_back(&copies);
  std::sort(order.begin(), order.end(), [](const auto* one, const auto* other) {
    const auto key = [](const std::vector<StagedEvent>& copies) {
      const StagedEvent& first = copies.front();
      return std::tuple(first.fence, first.event.unit, first.event.sequence, first.event.topic);
    };
    return key(*one) < key(*other);
  });
  std::map<std::string, std::uint64_t> reached;
  std::vector<const std::vector<StagedEvent>*> left = order;
  while (!left.empty()) {
    const auto fits = [&](const std::vector<StagedEvent>* copies) {
      return std::all_of(copies->begin(), copies->end(), [&](const StagedEvent& staged) {
        const auto& all = topics.at(staged.event.topic).staged;
        const auto at = all.find(staged.event.sequence);
        return at == all.begin() || reached[staged.event.topic] == std::prev(at)->first;
      });
    };
    auto next = std::find_if(left.begin(), left.end(), fits);
    // A circle, which no maker makes: whatever is the first.
    if (next == left.end()) next = left.begin();
    std::vector<ShippedEvent> unit;
    std::vector<std::string> names;
    for (const StagedEvent& staged : **next) {
      reached[staged.event.topic] = staged.event.sequence;
      names.push_back(staged.event.topic);
      unit.push_back(staged.event);
    }
    if (actors::event_name(unit.front().body)) {
      const actors::OutboxNote note = actors::episode_note(names, unit.front().body);
      if (note.value) {
        notes[note.key] = *note.value;
      } else {
        notes.erase(note.key);
      }
    }
    merged.units.push_back(std::move(unit));
    left.erase(next);
  }
  for (const auto& [name, topic] : topics) {
    ShippedEvent last = topic.last;
    if (!topic.staged.empty() && topic.staged.rbegin()->first >= topic.somewhere)
      last = topic.staged.rbegin()->second.event;
    if (last.sequence > 0) merged.books.last.push_back(kept(last));
  }
  for (auto& [key, value] : notes) merged.books.notes.push_back({key, value});
  return merged;
}

}  // namespace vigil::fleet
