// What has to be told of episodes whose process did not live to do it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/alerts/event_queue.h"
#include "actors/alerts/outbox.h"
#include "base/clock.h"

namespace vigil::actors {

/// Events of each topic that are looked at for what was left open without a note, as programs before this one
/// did. More than one: an episode that is over may still wait for its clip when the next one begins, and its
/// last word may come after that one's first.
inline constexpr std::size_t kLookBack = 8;

/// The note of an episode on these topics, its own first, whose last event is this body: kept while the
/// episode is open or its evidence is still to be told, and taken back by the event after which neither is.
OutboxNote episode_note(const std::vector<std::string>& topics, const std::string& body);

/// The key of an episode's note.
std::string episode_key(const std::string& episode);

/// What a note says: the episode's topics, its own first, and its last event.
struct NotedEpisode {
  std::vector<std::string> topics;
  std::string body;
};
/// Nothing of what is no such note.
std::optional<NotedEpisode> noted_episode(const std::string& key, const std::string& value);

/// Topics that get the same alerts: a rule's own first.
using SharedTopics = std::vector<std::vector<std::string>>;

/// What the process before this one owes: the end of each episode that it left open, and that the evidence
/// that it promised has failed (`closing_event`), on all topics of the episode; before that, on each topic
/// what others had of the episode and it had not, unchanged but for the sequence. Since programs before this
/// one wrote each copy by itself, one may be missing; `shared` says which topics there may be beside those in
/// the outbox. `mark` is the outbox's `mark_of_loss()`, `last` its `last_events(kLookBack)`, or more of them.
std::vector<WaitingEvent> unfinished_events(std::span<const OutboxEvent> last,
                                            const std::map<std::string, std::string>& notes,
                                            const SharedTopics& shared, base::Clock::WallTime now,
                                            const std::string& mark = {});

}  // namespace vigil::actors
