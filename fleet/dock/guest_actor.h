// A camera of another node, beside the device that computes for it: passes on what its router tells it.
#pragma once

#include <cstdint>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "fleet/messages.h"

namespace vigil::fleet {

struct GuestDeps {
  actors::WatchPtr watch;
  /// As the camera's own node counts, and here.
  std::uint32_t own_generation = 0;
  std::uint32_t generation = 0;
  spdlog::logger& logger;
};

struct guest_state {
  explicit guest_state(guest_actor::pointer self_pointer) : self(self_pointer) {}

  guest_actor::pointer self;
  link_actor link;
  static inline const char* name = "guest";
};

/// Joins the router.
guest_actor::behavior_type guest(guest_actor::stateful_pointer<guest_state> self, GuestDeps deps,
                                 link_actor link, const actors::router_actor& router);

}  // namespace vigil::fleet
