#include "actors/alerts/open_episodes.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "actors/alerts/closing.h"
#include "actors/messages/topic.h"
#include "base/timestamp.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

constexpr std::string_view kNotePrefix = "episode/";

struct Known {
  OutboxEvent event;
  /// Whether it was read from a rule's own topic.
  bool own = false;
};

struct Episode {
  /// By their numbers in the episode.
  std::map<std::uint64_t, Known> events;
  /// The number of the first one that a topic may lack.
  std::map<std::string, std::uint64_t> next;
  bool noted = false;
};

/// In the order of their beginnings.
using Episodes = std::map<std::string, Episode>;

bool is_own(const std::string& topic) {
  return kind_of(topic) == TopicKind::rule;
}

bool is_open(const OutboxEvent& event) {
  return closing_event(event, 0, event.time).has_value();
}

void know(Episodes& episodes, const OutboxEvent& event, const EventName& name) {
  Episode& episode = episodes[name.episode];
  const auto known = episode.events.find(name.number);
  if (known == episode.events.end() || (!known->second.own && is_own(event.topic)))
    episode.events[name.number] = {event, is_own(event.topic)};
  std::uint64_t& next = episode.next[event.topic];
  next = std::max(next, name.number + 1);
}

void read_notes(Episodes& episodes, const std::map<std::string, std::string>& notes) {
  for (const auto& [key, value] : notes) {
    auto noted = noted_episode(key, value);
    if (!noted) continue;
    OutboxEvent event;
    event.body = std::move(noted->body);
    event.time = time_of_event(event.body).value_or(event.time);
    const EventName name = event_name(event.body).value();
    for (std::string& topic : noted->topics) {
      event.topic = std::move(topic);
      know(episodes, event, name);
    }
    episodes[name.episode].noted = true;
  }
}

/// The events of each topic that have names, in their order.
using Names = std::map<std::string, std::vector<EventName>>;

/// Which topics lack the last event of a rule's own one because the process was killed before it wrote it
/// there. Without a note for it, the copies were written one after the other: one that had all but the last
/// is such a topic; one that lacks more was taken from the rule.
void find_missed(Episodes& episodes, const Names& names, const SharedTopics& shared) {
  std::map<std::string, std::set<std::string>> copies;
  for (const auto& [topic, events] : names)
    if (!is_own(topic)) copies[rule_topic(topic)].insert(topic);
  for (const std::vector<std::string>& topics : shared)
    for (const std::string& topic : topics)
      if (!is_own(topic)) copies[topics.front()].insert(topic);
  for (const auto& [own, others] : copies) {
    const auto written = names.find(own);
    if (written == names.end() || written->second.empty()) continue;
    const EventName& last = written->second.back();
    Episode& episode = episodes.at(last.episode);
    if (episode.noted) continue;
    for (const std::string& topic : others) {
      const auto there = names.find(topic);
      const bool first = there == names.end() && last.number == 0;
      const bool all_but_last = there != names.end() && written->second.size() > 1 &&
                                there->second.back() == written->second[written->second.size() - 2];
      if (first || all_but_last) episode.next.emplace(topic, last.number);
    }
  }
}

WaitingEvent copy_of(const OutboxEvent& event, const std::string& topic) {
  WaitingEvent copy;
  copy.topics = {topic};
  copy.time = event.time;
  copy.body = [body = event.body](const EventDraft& draft) { return with_sequence(body, draft.sequence); };
  return copy;
}

WaitingEvent end_of(const OutboxEvent& event, std::vector<std::string> topics, base::Clock::WallTime now,
                    const std::string& mark) {
  WaitingEvent end;
  end.topics = std::move(topics);
  end.time = now;
  end.body = [event, now, mark](const EventDraft& draft) {
    return closing_event(event, draft.sequence, now, mark).value();
  };
  end.note = [topics = end.topics](const std::string& body) { return episode_note(topics, body); };
  return end;
}

WaitingEvent nothing_but(OutboxNote note) {
  WaitingEvent event;
  event.note = [note = std::move(note)](const std::string&) { return note; };
  return event;
}

}  // namespace

std::string episode_key(const std::string& episode) {
  return std::string(kNotePrefix) + episode;
}

std::optional<NotedEpisode> noted_episode(const std::string& key, const std::string& value) {
  if (!key.starts_with(kNotePrefix)) return std::nullopt;
  const json note = json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!note.is_object() || !note.contains("topics") || !note.at("topics").is_array()) return std::nullopt;
  if (!note.contains("event") || !note.at("event").is_string()) return std::nullopt;
  NotedEpisode noted{{}, note.at("event").get<std::string>()};
  const auto name = event_name(noted.body);
  if (!name || key.substr(kNotePrefix.size()) != name->episode) return std::nullopt;
  for (const json& topic : note.at("topics"))
    if (topic.is_string()) noted.topics.push_back(topic.get<std::string>());
  return noted;
}

OutboxNote episode_note(const std::vector<std::string>& topics, const std::string& body) {
  const auto name = event_name(body);
  OutboxNote note{episode_key(name ? name->episode : std::string()), std::nullopt};
  if (is_open({0, "", 0, {}, body})) note.value = json{{"topics", topics}, {"event", body}}.dump();
  return note;
}

std::vector<WaitingEvent> unfinished_events(std::span<const OutboxEvent> last,
                                            const std::map<std::string, std::string>& notes,
                                            const SharedTopics& shared, base::Clock::WallTime now,
                                            const std::string& mark) {
  Episodes episodes;
  Names names;
  for (const OutboxEvent& event : last) {
    const auto name = event_name(event.body);
    if (!name) continue;
    names[event.topic].push_back(*name);
    know(episodes, event, *name);
  }
  read_notes(episodes, notes);
  find_missed(episodes, names, shared);
  std::vector<WaitingEvent> owed;
  for (const auto& [id, episode] : episodes) {
    const OutboxEvent& newest = episode.events.rbegin()->second.event;
    const bool open = is_open(newest);
    std::vector<std::string> topics;
    for (const auto& [topic, next] : episode.next) {
      topics.push_back(topic);
      const auto before = episode.events.find(next - 1);
      // What is over on this topic stays so.
      if (!open && before != episode.events.end() && !is_open(before->second.event)) continue;
      for (auto event = episode.events.lower_bound(next); event != episode.events.end(); ++event)
        owed.push_back(copy_of(event->second.event, topic));
    }
    if (open) {
      owed.push_back(end_of(newest, std::move(topics), now, mark));
    } else if (episode.noted) {
      owed.push_back(nothing_but(OutboxNote{episode_key(id), std::nullopt}));
    }
  }
  return owed;
}

}  // namespace vigil::actors
