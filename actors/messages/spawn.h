// How the actors of the pipeline are spawned.
#pragma once

#include <cstdint>
#include <utility>

#include <caf/event_based_actor.hpp>
#include <caf/spawn_options.hpp>

namespace vigil::actors {

/// own: each actor that blocks has a thread of its own; scheduled: all run where the system's scheduler says,
/// as tests want it.
enum class Threads : std::uint8_t { own, scheduled };

/// `self` is told when the new actor ends.
template <class Self, class... Arguments>
auto spawn(Self* self, Threads threads, Arguments&&... arguments) {
  return threads == Threads::own
             ? self->template spawn<caf::detached + caf::monitored>(std::forward<Arguments>(arguments)...)
             : self->template spawn<caf::monitored>(std::forward<Arguments>(arguments)...);
}

}  // namespace vigil::actors
