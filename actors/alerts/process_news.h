// What a process tells of itself, and what it could not tell when it was killed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "actors/alerts/event.h"
#include "actors/alerts/event_queue.h"
#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// The event of `news`, on the process's topic. The outbox, of which its id is made when it is written, has
/// to outlive it.
WaitingEvent process_news(const ProcessNews& news, base::Clock::WallTime time, const Outbox& outbox);

/// The same, with the note that the process is online, or no longer.
WaitingEvent noted_news(const ProcessNews& news, base::Clock::WallTime time, const Outbox& outbox);

/// That the process which noted that it is online is not: it had no time to say so. Nothing if none did.
std::optional<WaitingEvent> unsaid_news(const std::map<std::string, std::string>& notes,
                                        base::Clock::WallTime time, const Outbox& outbox);

}  // namespace vigil::actors
