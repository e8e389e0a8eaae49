#include "fleet/dock/guest_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::fleet {

guest_actor::behavior_type guest(guest_actor::stateful_pointer<guest_state> self, GuestDeps deps,
                                 link_actor link) {
  actors::set_handlers(self, deps.logger);
  self->state.link = std::move(link);
  return {
      [self, camera = deps.camera](grant_atom, std::uint32_t patches) {
        self->send(self->state.link, GuestRoom{camera, patches});
      },
      [self, generation = deps.own_generation](const actors::PatchAck& ack) {
        actors::PatchAck own = ack;
        own.generation = generation;
        self->send(self->state.link, own);
      },
      // It reads nothing, and its settings go the way of its patches. Of one that is unknown here it hears
      // so.
      [](actors::anew_atom) {},
      [](actors::step_atom) {},
      [](const actors::CameraPtr&, const actors::WatchPtr&) {},
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::fleet
