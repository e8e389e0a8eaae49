// What is read of events that were written before, and the ends of episodes that their process did not live
// to tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// An alert's `id`: its episode and its number within it, whatever mark stands behind them.
struct EventName {
  std::string episode;
  std::uint64_t number = 0;
  friend bool operator==(const EventName&, const EventName&) = default;
};

/// Nothing of what is no alert of Vigil.
std::optional<EventName> event_name(const std::string& body);

/// The `time` of an event; nothing if it has none.
std::optional<base::Clock::WallTime> time_of_event(const std::string& body);

/// The same event for a topic on which it has this sequence. What is no event comes back as it is.
std::string with_sequence(const std::string& body, std::uint64_t sequence);

/// If this event, the last of its episode, leaves it open (it is an alert, `new` or `update`): the body
/// of the `end` that closes it, as the topic's next event. `end_time` is the time of the last event, since
/// what was seen later nobody knows, `time` is now, and `data.end_reason` is "restart". Evidence that was
/// still to be made has failed; an `end` that promised some is told again, with that. What is no alert of
/// Vigil is left alone. `mark`: of the outbox's loss, which the id ends with, if there was one.
std::optional<std::string> closing_event(const OutboxEvent& last, std::uint64_t sequence,
                                         base::Clock::WallTime now, const std::string& mark = {});

}  // namespace vigil::actors
