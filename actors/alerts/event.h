// Events as they leave: CloudEvents 1.0 in JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/alerts/alert_policy.h"
#include "actors/messages/data.h"

namespace vigil::actors {

/// The identity of an episode: a ULID of its start and of what distinguishes it, so that it sorts by time.
/// The same arguments give the same.
std::string episode_id(base::Clock::WallTime start, std::string_view what);

/// What a rule asks and when it tells, in 16 hexadecimal digits: the same on every machine as long as these
/// are the same, another one as soon as they change. Severity, topics and snoozes are no part of it.
std::string rule_version(const WatchSettings& watch, const config::RuleSettings& rule);

/// Which model answered: part of every alert.
struct ModelIdentity {
  std::string id;
};

/// All that an alert is made of.
struct Alert {
  /// The window that it is about, and which rule of the window's camera.
  const WindowAnswers& window;
  std::size_t rule = 0;
  Emission emission;
  /// Of `episode_id`.
  std::string episode;
  /// The answer's, if it was explained.
  std::optional<std::string> text;
  ModelIdentity model;
  Evidence evidence;
  /// Nothing is new but the evidence.
  bool only_evidence = false;
};

/// An alert as event number `sequence` of its topic (docs/event.schema.json). The `id` is the episode's with
/// the number of the emission, since equal source and id mean a duplicate to every reader of CloudEvents;
/// `data.episode` stays the same from `new` to `end`. `now` is when it is written: what it waited for is part
/// of its latency.
std::string alert_event(const Alert& alert, std::uint64_t sequence, base::Clock::TimePoint now);

/// Where an event that is no alert's is in the outbox. Its `id` is made of it: the sequence outlives the
/// process, and the outbox's identity a sequence that begins anew, so that no two share an id.
struct EventPlace {
  std::string outbox;
  std::uint64_t sequence = 0;
};

/// A change of a camera's state.
std::string status_event(const WatchSettings& watch, CameraState state, std::string_view reason,
                         const EventPlace& place, base::Clock::WallTime time);

enum class ProcessState : std::uint8_t { online, offline };

constexpr const char* name_of(ProcessState state) {
  return state == ProcessState::online ? "online" : "offline";
}

/// What a process tells of itself: that it is there, that it is not, or what became of its outbox.
struct ProcessNews {
  std::string process;
  ProcessState state = ProcessState::online;
  /// A word.
  std::string reason;
  /// A line for people; may be empty.
  std::string text;
};

std::string process_event(const ProcessNews& news, const EventPlace& place, base::Clock::WallTime time);

}  // namespace vigil::actors
