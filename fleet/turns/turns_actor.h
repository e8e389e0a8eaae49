// The shell around `WindowTurns`: stands between this node's links and its alerts actor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "fleet/messages/messages.h"
#include "fleet/turns/window_turns.h"

namespace vigil::fleet {

struct TurnsDeps {
  spdlog::logger& logger;
  /// Which moves are over, whenever these are others; called in its thread.
  std::function<void(const std::set<std::uint64_t>&)> filled;
};

struct turns_state {
  explicit turns_state(turns_actor::pointer self_pointer) : self(self_pointer) {}

  void tell(const WindowTurns::News& news);

  turns_actor::pointer self;
  std::optional<TurnsDeps> deps;
  actors::alerts_actor alerts;
  WindowTurns turns;
  /// Links by device, in whose names windows are told, so that their texts are asked of them.
  std::map<std::string, actors::stream_actor> links;
  std::set<std::uint64_t> told_filled;
  static inline const char* name = "turns";
};

turns_actor::behavior_type turns(turns_actor::stateful_pointer<turns_state> self, TurnsDeps deps,
                                 actors::alerts_actor alerts);

}  // namespace vigil::fleet
