#include "actors/camera/recorder_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

void recorder_state::on_recording(bool recording, const std::string& reason) {
  deps->metrics.camera_recording(camera, recording);
  if (recording) {
    deps->logger.info("camera {}: recorded", camera);
  } else {
    deps->logger.warn("camera {}: not recorded: {}", camera, reason);
  }
}

// One step for one message, so that `stop` is heard between two.
void recorder_state::advance() {
  const Recorder::Step step = recorder->step();
  switch (step.next) {
    case Recorder::Step::Next::again:
      self->send(self, step_atom_v);
      break;
    case Recorder::Step::Next::wait:
      self->delayed_send(self, step.until - deps->clock.now(), step_atom_v);
      break;
    case Recorder::Step::Next::finished:
      self->quit();
      break;
  }
}

recorder_actor::behavior_type recorder(recorder_actor::stateful_pointer<recorder_state> self,
                                       RecorderOptions options, RecorderDeps deps) {
  set_handlers(self, deps.logger);
  recorder_state& state = self->state;
  state.camera = options.camera->name;
  state.deps.emplace(std::move(deps));
  state.recorder.emplace(std::move(options), state.deps->open, state.deps->clock, *state.deps->pulse, state);
  self->send(self, step_atom_v);
  return {
      [self](step_atom) { self->state.advance(); },
      // It waits for its source or for the next attempt; the pulse is cancelled before.
      [self](stop_atom) { self->send(self, step_atom_v); },
  };
}

}  // namespace vigil::actors
