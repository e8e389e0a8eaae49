#include "actors/pruner/pruner_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

pruner_actor::behavior_type pruner(pruner_actor::stateful_pointer<pruner_state> self, PrunerDeps deps,
                                   vision_actor vision) {
  set_handlers(self, deps.logger);
  self->state.vision = std::move(vision);
  return {
      [self](join_atom, const CameraPtr& camera, std::uint32_t generation) {
        self->state.cameras[camera->name] = caf::actor_cast<camera_actor>(self->current_sender());
        self->send(self->state.vision, join_atom_v, camera, generation);
      },
      [self](const FramePatchPtr& patch) { self->send(self->state.vision, patch); },
      [self](end_atom, const CameraPtr& camera) {
        self->state.cameras.erase(camera->name);
        self->send(self->state.vision, end_atom_v, camera);
      },
      [self](grant_atom, const std::string& camera, std::uint32_t credits) {
        const auto entry = self->state.cameras.find(camera);
        if (entry != self->state.cameras.end()) self->send(entry->second, grant_atom_v, credits);
      },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
