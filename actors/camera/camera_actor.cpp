#include "actors/camera/camera_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

void camera_state::on_state(CameraState state, const std::string& reason) {
  self->send(supervisor, CameraReport{camera_name, state, reason, false});
}

void camera_state::on_frame() {
  rate.count(deps->clock.now());
  deps->metrics.frame_captured(camera_name, deps->clock.wall());
  deps->metrics.camera_fps(camera_name, rate.per_second());
}

void camera_state::on_dropped(std::uint64_t frames, const char* reason) {
  deps->metrics.frames_dropped(camera_name, reason, frames);
}

void camera_state::on_reconnect() {
  deps->metrics.camera_reconnected(camera_name);
}

void camera_state::on_damaged_packets(std::uint64_t packets) {
  deps->metrics.camera_damaged_packets(camera_name, packets);
}

void camera_state::send(const FramePatchPtr& patch) {
  if (const WatchPtr watch = book.refer(patch->watch); watch && watch->version != sent_version) {
    self->send(router, watch);
    sent_version = watch->version;
  }
  self->send(router, patch);
}

void camera_state::alter(const CameraPtr& now, const WatchPtr& watch) {
  book.put(watch);
  camera->alter(now, watch);
  // At once: where its fence before was refused, it has no credit for a patch to go ahead of.
  if (fence_of(watch->version) == fence_of(sent_version)) return;
  self->send(router, watch);
  sent_version = watch->version;
}

// One step for one message, so that credit and `stop` are heard between two.
void camera_state::advance() {
  const CameraStep step = camera->step();
  if (step.patch) send(step.patch);
  waits_for_credit = step.next == CameraStep::Next::credit;
  switch (step.next) {
    case CameraStep::Next::again:
      self->send(self, step_atom_v);
      break;
    case CameraStep::Next::wait:
      self->delayed_send(self, step.until - deps->clock.now(), step_atom_v);
      break;
    case CameraStep::Next::rest:
      self->send(supervisor, SourceRest{camera_name, config::Role::detect, step.until, step.no_descriptor});
      self->quit();
      break;
    case CameraStep::Next::credit:
      break;
    case CameraStep::Next::finished:
      if (camera->failure()) {
        self->send(supervisor, CameraReport{camera_name, CameraState::down, *camera->failure(), true});
      }
      self->send(router, end_atom_v, camera_name);
      self->quit();
      break;
  }
}

camera_actor::behavior_type camera(camera_actor::stateful_pointer<camera_state> self, CameraOptions options,
                                   CameraDeps deps, router_actor router, supervisor_actor supervisor) {
  set_handlers(self, deps.logger);
  camera_state& state = self->state;
  state.camera_name = options.camera->name;
  state.router = std::move(router);
  state.supervisor = std::move(supervisor);
  state.deps.emplace(std::move(deps));
  if (options.camera->stream.tls.insecure) {
    state.deps->logger.warn("{}: `tls: {{insecure: true}}`: nobody verifies who answers for this camera",
                            state.camera_name);
  }
  const std::uint32_t generation = options.generation;
  const WatchPtr watch = options.watch;
  state.book.put(watch);
  state.sent_version = watch->version;
  state.camera.emplace(std::move(options), state.deps->open, state.deps->clock, *state.deps->pulse, state);
  self->send(state.router, join_atom_v, watch, generation);
  // The first grant starts it: without credit, the first stride would be dropped.
  state.waits_for_credit = true;
  return {
      [self](grant_atom, std::uint32_t credits) {
        self->state.camera->grant(credits);
        if (self->state.waits_for_credit) self->state.advance();
      },
      [self](const PatchAck& ack) {
        self->state.camera->acknowledge(ack);
        if (self->state.waits_for_credit) self->state.advance();
      },
      [self](anew_atom) { self->state.camera->show_all(); },
      [self](step_atom) { self->state.advance(); },
      [self](const CameraPtr& camera, const WatchPtr& now) { self->state.alter(camera, now); },
      [self](stop_atom) {
        self->state.camera->stop();
        self->send(self, step_atom_v);
      },
  };
}

}  // namespace vigil::actors
