#include "actors/camera/recorder_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

void recorder_state::on_recording(bool recording, const std::string& reason) {
  self->send(supervisor, RecorderReport{camera, recording, reason});
}

// One step for one message, so that `stop` is heard between two.
void recorder_state::advance() {
  const Recorder::Step step = recorder->step();
  switch (step.next) {
    case Recorder::Step::Next::again:
      self->send(self, step_atom_v);
      break;
    case Recorder::Step::Next::rest:
      self->send(supervisor, SourceRest{camera, config::Role::record, step.until, step.no_descriptor});
      self->quit();
      break;
    case Recorder::Step::Next::finished:
      self->quit();
      break;
  }
}

recorder_actor::behavior_type recorder(recorder_actor::stateful_pointer<recorder_state> self,
                                       RecorderOptions options, RecorderDeps deps,
                                       supervisor_actor supervisor) {
  set_handlers(self, deps.logger);
  recorder_state& state = self->state;
  state.camera = options.camera->name;
  state.supervisor = std::move(supervisor);
  state.deps.emplace(std::move(deps));
  state.recorder.emplace(std::move(options), state.deps->open, state.deps->clock, *state.deps->pulse, state);
  self->send(self, step_atom_v);
  return {
      [self](step_atom) { self->state.advance(); },
      // It waits for its source; the pulse is cancelled before.
      [self](stop_atom) { self->send(self, step_atom_v); },
  };
}

}  // namespace vigil::actors
