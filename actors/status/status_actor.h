// Tells whoever asks by message what this process is doing.
#pragma once

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"

namespace vigil::actors {

/// All of it has to outlive the actor system.
struct StatusDeps {
  /// This process's own book, which its pipeline writes.
  const StatusBoard& board;
  const Metrics& metrics;
  spdlog::logger& logger;
};

struct status_state {
  static inline const char* name = "status";
};

/// To be spawned hidden (`caf::hidden`) and not detached: it never blocks and needs no other actor, so that
/// it answers whatever the pipeline does, and nobody who waits for the pipeline to end waits for it. What
/// takes long is made by another actor of its own; if that fails, the request is answered with an error.
status_actor::behavior_type status(status_actor::stateful_pointer<status_state> self, StatusDeps deps);

}  // namespace vigil::actors
