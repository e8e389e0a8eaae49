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
std::string episode_id(config::Clock::WallTime start, std::string_view what);

/// What a rule asks and when it tells, in 16 hexadecimal digits: the same on every machine as long as these
/// are the same, another one as soon as they change. Severity, topics and snoozes are no part of it.
std::string rule_version(const config::CameraSettings& camera, const config::RuleSettings& rule);

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
/// `data.episode` stays the same from `new` to `end`.
std::string alert_event(const Alert& alert, std::uint64_t sequence, config::Clock::TimePoint now);

/// A change of a camera's state.
std::string status_event(const config::CameraSettings& camera, CameraState state, std::string_view reason,
                         std::uint64_t sequence, config::Clock::WallTime time);

}  // namespace vigil::actors
