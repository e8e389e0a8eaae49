// The end of an episode that its process did not live to tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// If this event, the last of its topic, leaves an episode open (it is an alert, `new` or `update`): the body
/// of the `end` that closes it, as the topic's next event. `end_time` is the time of the last event, since
/// what was seen later nobody knows, `time` is now, and `data.end_reason` is "restart". Evidence that was
/// still to be made has failed; an `end` that promised some is told again, with that. What is no alert of
/// Vigil is left alone.
std::optional<std::string> closing_event(const OutboxEvent& last, std::uint64_t sequence,
                                         config::Clock::WallTime now);

}  // namespace vigil::actors
