// A camera of another node, beside the device that computes for it: passes on what its router tells it.
#pragma once

#include <cstdint>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "fleet/messages/messages.h"

namespace vigil::fleet {

struct GuestDeps {
  std::string camera;
  /// As the camera's own node counts.
  std::uint32_t own_generation = 0;
  spdlog::logger& logger;
};

struct guest_state {
  explicit guest_state(guest_actor::pointer self_pointer) : self(self_pointer) {}

  guest_actor::pointer self;
  link_actor link;
  static inline const char* name = "guest";
};

/// Whoever spawns it joins the router in its name.
guest_actor::behavior_type guest(guest_actor::stateful_pointer<guest_state> self, GuestDeps deps,
                                 link_actor link);

}  // namespace vigil::fleet
