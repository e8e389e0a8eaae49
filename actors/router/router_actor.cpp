#include "actors/router/router_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

void router_state::take(const FramePatchPtr& patch) {
  const std::string& camera = patch->watch.camera;
  if (gate.pass(*patch)) {
    self->send(visions.at(camera), patch);
  } else {
    metrics->frames_dropped(camera, "device_down", patch->frames.size());
    send(ack_of(*patch, PatchOutcome::lost, "device_down"));
  }
}

void router_state::route(const Route& route) {
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

void router_state::grant(const std::string& camera, std::uint32_t room) {
  const std::uint32_t more = gate.grant(camera, room);
  const camera_actor handle = more > 0 ? find(camera) : camera_actor();
  if (handle) self->send(handle, grant_atom_v, more);
}

void router_state::send(const PatchAck& ack) {
  if (const camera_actor handle = find(ack.camera)) self->send(handle, ack);
}

camera_actor router_state::find(const std::string& camera) const {
  const auto entry = cameras.find(camera);
  return entry == cameras.end() ? camera_actor() : caf::actor_cast<camera_actor>(entry->second);
}

void router_state::tell(const std::optional<PatchGate::Told>& told) {
  if (!told) return;
  const vision_actor& vision = visions.at(told->camera);
  if (told->lost_frames > 0) metrics->frames_dropped(told->camera, "device_lost", told->lost_frames);
  for (const PatchAck& ack : told->lost) send(ack);
  if (told->joins) self->send(vision, join_atom_v, told->watch, told->generation);
  if (told->ends) self->send(vision, end_atom_v, told->camera);
}

router_actor::behavior_type router(router_actor::stateful_pointer<router_state> self, RouterDeps deps) {
  set_handlers(self, deps.logger);
  self->state.metrics = &deps.metrics;
  return {
      [self](join_atom, const WatchPtr& watch, std::uint32_t generation) {
        self->state.cameras[watch->name] = caf::actor_cast<caf::actor_addr>(self->current_sender());
        self->state.tell(self->state.gate.join(watch, generation));
      },
      [self](const WatchPtr& watch) {
        if (self->state.gate.know(watch)) self->send(self->state.visions.at(watch->name), watch);
      },
      [self](const FramePatchPtr& patch) { self->state.take(patch); },
      [self](end_atom, const std::string& camera) {
        self->state.cameras.erase(camera);
        self->state.tell(self->state.gate.end(camera));
      },
      [self](grant_atom, const std::string& camera, std::uint32_t room) { self->state.grant(camera, room); },
      [self](const PatchAck& ack) {
        if (self->state.gate.acknowledge(ack)) self->state.send(ack);
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
