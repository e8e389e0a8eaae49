// What is read of events that were written before, and the ends of episodes that their process did not live
// to tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/alerts/alert_policy.h"
#include "actors/alerts/outbox.h"
#include "actors/messages/data.h"

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

/// What an alert's event says of its episode.
struct AlertRecord {
  EventName name;
  std::string rule_version;
  /// As it was told; `Emission::ordinal` is the event's number.
  Emission told;
  Evidence evidence;
  base::Clock::WallTime time;
};

/// Nothing of what is no alert of Vigil, or lacks what an episode is resumed by.
std::optional<AlertRecord> read_alert(const std::string& body);

/// The state in an event of a camera's or of a process's state; nothing in others.
std::optional<std::string> state_in(const std::string& body);

/// Why somebody else ends what a maker of events has begun.
struct Closing {
  std::string end_reason = "restart";
  /// Of the evidence that was still to be made.
  std::string no_evidence = "Vigil was started again before it was made";
};

/// If this event, the last of its episode, leaves it open (it is an alert, `new` or `update`): the body
/// of the `end` that closes it, as the topic's next event. `end_time` is the time of the last event, since
/// what was seen later nobody knows, and `time` is now. Evidence that was still to be made has failed; an
/// `end` that promised some is told again, with that. What is no alert of Vigil is left alone. `mark`: of the
/// outbox's loss, which the id ends with, if there was one.
std::optional<std::string> closing_event(const OutboxEvent& last, std::uint64_t sequence,
                                         base::Clock::WallTime now, const std::string& mark = {},
                                         const Closing& why = {});

/// The `update` after this event, which leaves its episode open and promised evidence: that it has failed,
/// and why. Of the same window and `time`. Nothing of what promised none, or is over.
std::optional<std::string> failed_evidence_event(const std::string& last, std::uint64_t sequence,
                                                 const std::string& why);

}  // namespace vigil::actors
