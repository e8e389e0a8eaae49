#include "actors/answer/answer_actor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/answer/answer.h"
#include "actors/messages/shell.h"

namespace vigil::actors {

void answer_state::join(const CameraPtr& camera, vision_actor sender) {
  vision = std::move(sender);
  self->send(vision, grant_atom_v, camera->name, desk->join(camera));
}

void answer_state::take(const VisualPatchPtr& patch) {
  const AnswerDesk::Taken taken = desk->push(patch);
  if (taken.refused) {
    deps->metrics.frames_dropped(patch->camera->name, "late", static_cast<std::uint64_t>(patch->frames));
  }
  if (taken.overtaken > 0) deps->metrics.windows("overtaken", taken.overtaken);
  if (taken.credits > 0) self->send(vision, grant_atom_v, patch->camera->name, taken.credits);
  schedule();
}

void answer_state::work() {
  scheduled = false;
  if (credits == 0) return;
  const AnswerDesk::Batch batch = desk->pop(std::min(deps->batch, credits));
  deps->metrics.queue_depth("answer", desk->size());
  if (!batch.windows.empty()) {
    const window::AnswerTimes before = deps->answerer.times();
    const Answered answered = actors::answer(deps->answerer, batch.windows);
    const window::AnswerTimes& after = deps->answerer.times();
    std::int64_t prompt_tokens = 0;
    std::int64_t generated = 0;
    for (const WindowAnswersPtr& window : answered.windows) {
      for (const window::Answer& each : window->answers) {
        prompt_tokens += each.prompt_tokens;
        generated += static_cast<std::int64_t>(each.tokens.size());
      }
      const std::chrono::duration<double> latency = deps->clock.now() - window->captured.steady;
      deps->metrics.window_latency(latency.count());
      --credits;
      self->send(alerts, window);
    }
    deps->metrics.answered(after.prefill - before.prefill, after.decode - before.decode, prompt_tokens,
                           generated);
    deps->metrics.windows("answered", answered.windows.size());
    for (const auto& [camera, reason] : answered.failures) {
      deps->metrics.windows("failed", 1);
      deps->logger.error("answer: camera {}: no answer about a window: {}", camera->name, reason);
    }
    for (const DueWindow& window : batch.windows) {
      if (window.held_credits > 0) self->send(vision, grant_atom_v, window.camera->name, window.held_credits);
    }
  }
  for (const CameraPtr& camera : batch.ended) self->send(alerts, end_atom_v, camera);
  if (desk->size() > 0 || !batch.windows.empty()) schedule();
}

void answer_state::schedule() {
  if (scheduled) return;
  scheduled = true;
  self->send(self, work_atom_v);
}

answer_actor::behavior_type answer(answer_actor::stateful_pointer<answer_state> self, AnswerDeps deps,
                                   alerts_actor alerts) {
  set_handlers(self, deps.logger);
  answer_state& state = self->state;
  state.alerts = std::move(alerts);
  state.desk.emplace(deps.frames_per_patch);
  state.deps.emplace(deps);
  self->send(state.alerts, join_atom_v);
  return {
      [self](join_atom, const CameraPtr& camera) {
        self->state.join(camera, caf::actor_cast<vision_actor>(self->current_sender()));
      },
      [self](const VisualPatchPtr& patch) { self->state.take(patch); },
      [self](end_atom, const CameraPtr& camera) {
        self->state.desk->end(camera);
        self->state.schedule();
      },
      [self](grant_atom, std::uint32_t credits) {
        self->state.credits += credits;
        self->state.schedule();
      },
      [self](work_atom) { self->state.work(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
