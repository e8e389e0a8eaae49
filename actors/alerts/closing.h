// The ends of episodes that their process did not live to tell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// Events of a topic that are looked at for what was left open. More than one: an episode that is over may
/// still wait for its clip when the next one begins, and its last word may come after that one's first.
inline constexpr std::size_t kLookBack = 8;

/// Of each episode that these events, of one topic and in their order, tell of: the last one. In the order of
/// the episodes' first events.
std::vector<OutboxEvent> last_of_each_episode(std::span<const OutboxEvent> events);

/// If this event, the last of its episode, leaves it open (it is an alert, `new` or `update`): the body
/// of the `end` that closes it, as the topic's next event. `end_time` is the time of the last event, since
/// what was seen later nobody knows, `time` is now, and `data.end_reason` is "restart". Evidence that was
/// still to be made has failed; an `end` that promised some is told again, with that. What is no alert of
/// Vigil is left alone.
std::optional<std::string> closing_event(const OutboxEvent& last, std::uint64_t sequence,
                                         config::Clock::WallTime now);

}  // namespace vigil::actors
