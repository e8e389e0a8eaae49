#include "actors/router/router_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

void router_state::take(const FramePatchPtr& patch) {
  const std::string& camera = patch->watch.camera;
  if (gate.pass(*patch)) {
    self->send(visions.at(camera), patch);
    if (const auto second = seconds.find(camera); second != seconds.end() && second->second.gate.pass(*patch))
      self->send(second->second.vision, patch);
  } else {
    metrics->frames_dropped(camera, "device_down", patch->frames.size());
    send(ack_of(*patch, PatchOutcome::lost, "device_down"));
  }
}

void router_state::route(const Route& route) {
  const std::string& camera = route.camera;
  if (!route.vision) {
    seconds.erase(camera);
    visions.erase(camera);
    gate.shut(camera);
    return;
  }
  vision_actor& vision = visions[camera];
  const auto second = seconds.find(camera);
  const bool is_second = second != seconds.end() && second->second.vision == route.vision;
  // One that has passed over does not go back.
  if (route.former_vision && vision != route.vision) {
    if (is_second && vision == route.former_vision) return;
    seconds.erase(camera);
    if (vision != route.former_vision) begin(camera, route.former_vision);
    seconds[camera].vision = route.vision;
    return join_second(camera);
  }
  if (is_second) return pass_over(camera);
  seconds.erase(camera);
  if (vision == route.vision) return;
  begin(camera, route.vision);
}

void router_state::begin(const std::string& camera, const vision_actor& device) {
  left.erase(camera);
  const bool had_another = bool(std::exchange(visions.at(camera), device));
  if (const camera_actor handle = had_another ? find(camera) : camera_actor())
    self->send(handle, anew_atom_v);
  tell(gate.open(camera));
}

void router_state::join_second(const std::string& camera) {
  const auto second = seconds.find(camera);
  const auto told = second == seconds.end() ? std::nullopt : gate.joined(camera);
  if (!told) return;
  second->second.gate.join(told->generation);
  self->send(second->second.vision, join_atom_v, told->watch, told->generation);
}

void router_state::end_second(const std::string& camera) {
  const auto second = seconds.find(camera);
  if (second == seconds.end() || !second->second.gate.has_joined()) return;
  second->second.gate.end();
  self->send(second->second.vision, end_atom_v, camera);
}

void router_state::pass_over(const std::string& camera) {
  const Second second = std::move(seconds.extract(camera).mapped());
  vision_actor& vision = visions.at(camera);
  left[camera] = caf::actor_cast<caf::actor_addr>(vision);
  vision = second.vision;
  const PatchGate::Passed passed = gate.pass_over(camera, second.gate);
  for (const PatchAck& ack : passed.acks) send(ack);
  const camera_actor handle = passed.more > 0 ? find(camera) : camera_actor();
  if (handle) self->send(handle, grant_atom_v, passed.more);
}

void router_state::grant(const std::string& camera, std::uint32_t room) {
  const caf::strong_actor_ptr& sender = self->current_sender();
  if (const auto second = seconds.find(camera); second != seconds.end() && second->second.vision == sender)
    return second->second.gate.grant(room);
  if (const auto gone = left.find(camera); gone != left.end() && gone->second == sender) return;
  const std::uint32_t more = gate.grant(camera, room);
  const camera_actor handle = more > 0 ? find(camera) : camera_actor();
  if (handle) self->send(handle, grant_atom_v, more);
}

void router_state::acknowledge(const PatchAck& ack) {
  const caf::strong_actor_ptr& sender = self->current_sender();
  if (const auto second = seconds.find(ack.camera);
      second != seconds.end() && second->second.vision == sender) {
    if (const auto heard = second->second.gate.acknowledge(ack)) send(*heard);
    return;
  }
  // What it says of what it still has is none of the camera's.
  if (const auto gone = left.find(ack.camera); gone != left.end() && gone->second == sender) return;
  if (gate.acknowledge(ack)) send(ack);
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
        self->state.join_second(watch->name);
      },
      [self](const WatchPtr& watch) {
        if (!self->state.gate.know(watch)) return;
        self->send(self->state.visions.at(watch->name), watch);
        const auto second = self->state.seconds.find(watch->name);
        if (second != self->state.seconds.end() && second->second.gate.has_joined())
          self->send(second->second.vision, watch);
      },
      [self](const FramePatchPtr& patch) { self->state.take(patch); },
      [self](end_atom, const std::string& camera) {
        self->state.cameras.erase(camera);
        self->state.tell(self->state.gate.end(camera));
        self->state.end_second(camera);
      },
      [self](grant_atom, const std::string& camera, std::uint32_t room) { self->state.grant(camera, room); },
      [self](const PatchAck& ack) { self->state.acknowledge(ack); },
      [self](const Route& route) { self->state.route(route); },
      [self](forget_atom, const std::string& camera) {
        self->state.gate.forget(camera);
        self->state.visions.erase(camera);
        self->state.seconds.erase(camera);
        self->state.left.erase(camera);
        self->state.cameras.erase(camera);
      },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
