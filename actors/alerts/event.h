// Events as they leave: CloudEvents 1.0 in JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/alerts/alert_policy.h"
#include "actors/messages/data.h"

namespace vigil::actors {

/// RFC 3339 in UTC with milliseconds: "2026-08-01T10:00:12.480Z".
std::string rfc3339(config::Clock::WallTime time);

/// The identity of an episode: a ULID of its start and what it is about, so that it sorts by time. The same
/// arguments give the same.
std::string episode_id(const std::string& topic, config::Clock::WallTime start, std::uint64_t episode);

/// Which model answered: part of every alert.
struct ModelIdentity {
  std::string id;
};

/// An alert: `emission` about rules[rule] of the window's camera, with the answer's text if it was explained.
/// The `id` is the episode's with the number of the emission, since equal source and id mean a duplicate to
/// every reader of CloudEvents; `data.episode` stays the same from `new` to `end`.
std::string alert_event(const WindowAnswers& window, std::size_t rule, const Emission& emission,
                        const std::optional<std::string>& text, const ModelIdentity& model,
                        std::uint64_t sequence, config::Clock::TimePoint now);

/// A change of a camera's state.
std::string status_event(const config::CameraSettings& camera, CameraState state, std::string_view reason,
                         std::uint64_t sequence, config::Clock::WallTime time);

}  // namespace vigil::actors
