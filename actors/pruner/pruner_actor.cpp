#include "actors/pruner/pruner_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

void pruner_state::take(const FramePatchPtr& patch) {
  const std::string& camera = patch->camera->name;
  if (gate.pass(*patch)) {
    self->send(visions.at(camera), patch);
  } else {
    metrics->frames_dropped(camera, "device_down", patch->frames.size());
  }
}

void pruner_state::route(const Route& route) {
  if (!route.vision) {
    visions.erase(route.camera);
    gate.shut(route.camera);
    return;
  }
  vision_actor& vision = visions[route.camera];
  if (vision == route.vision) return;
  vision = route.vision;
  tell(gate.open(route.camera));
}

void pruner_state::grant(const std::string& camera, std::uint32_t credits) {
  const std::uint32_t more = gate.grant(camera, credits);
  const auto entry = cameras.find(camera);
  if (more == 0 || entry == cameras.end()) return;
  if (const auto handle = caf::actor_cast<camera_actor>(entry->second))
    self->send(handle, grant_atom_v, more);
}

void pruner_state::tell(const std::optional<PatchGate::Told>& told) {
  if (!told) return;
  const vision_actor& vision = visions.at(told->camera->name);
  if (told->lost_frames > 0) metrics->frames_dropped(told->camera->name, "device_lost", told->lost_frames);
  if (told->joins) self->send(vision, join_atom_v, told->camera, told->generation);
  if (told->ends) self->send(vision, end_atom_v, told->camera);
}

pruner_actor::behavior_type pruner(pruner_actor::stateful_pointer<pruner_state> self, PrunerDeps deps) {
  set_handlers(self, deps.logger);
  self->state.metrics = &deps.metrics;
  return {
      [self](join_atom, const CameraPtr& camera, std::uint32_t generation) {
        self->state.cameras[camera->name] = caf::actor_cast<caf::actor_addr>(self->current_sender());
        self->state.tell(self->state.gate.join(camera, generation));
      },
      [self](const FramePatchPtr& patch) { self->state.take(patch); },
      [self](end_atom, const CameraPtr& camera) {
        self->state.cameras.erase(camera->name);
        self->state.tell(self->state.gate.end(camera));
      },
      [self](grant_atom, const std::string& camera, std::uint32_t credits) {
        self->state.grant(camera, credits);
      },
      [self](const Route& route) { self->state.route(route); },
      [self](forget_atom, const std::string& camera) {
        self->state.gate.forget(camera);
        self->state.visions.erase(camera);
        self->state.cameras.erase(camera);
      },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
