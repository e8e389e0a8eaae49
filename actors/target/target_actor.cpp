#include "actors/target/target_actor.h"

#include <chrono>
#include <vector>

#include "actors/messages/shell.h"
#include "actors/target/explain.h"

namespace vigil::actors {

void target_state::work() {
  scheduled = false;
  std::vector<ExplainRequest> batch;
  std::vector<alerts_actor> askers;
  for (; !queue.empty() && batch.size() < limit->now(); queue.pop_front()) {
    batch.push_back(std::move(queue.front().first));
    askers.push_back(std::move(queue.front().second));
  }
  deps->metrics.queue_depth("target", queue.size(), deps->device);
  if (batch.empty()) return;
  const auto start = deps->clock.now();
  Explained explained = explain(deps->generator, batch);
  const std::chrono::duration<double> spent = deps->clock.now() - start;
  deps->metrics.generated(spent.count(), explained.tokens);
  if (explained.too_many.empty()) {
    limit->fitted(batch.size());
  } else {
    limit->too_many(batch.size());
    deps->logger.error("target: {} answers have no text, batches of at most {} from now on: {}", batch.size(),
                       limit->now(), explained.too_many);
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const config::CameraSettings& camera = *batch[i].window->camera;
    if (!explained.failures[i].empty() && explained.too_many.empty())
      deps->logger.error("target: camera {}: no explanation for rule {}: {}", camera.name,
                         camera.rules[batch[i].rule].name, explained.failures[i]);
    self->send(askers[i], Explanation{batch[i].ticket, explained.texts[i], explained.failures[i]});
  }
  schedule();
}

void target_state::schedule() {
  if (scheduled || queue.empty()) return;
  scheduled = true;
  self->send(self, work_atom_v);
}

target_actor::behavior_type target(target_actor::stateful_pointer<target_state> self, TargetDeps deps) {
  set_handlers(self, deps.logger);
  self->state.deps.emplace(deps);
  self->state.limit.emplace(deps.batch);
  return {
      [self](const ExplainRequest& request) {
        self->state.queue.emplace_back(request, caf::actor_cast<alerts_actor>(self->current_sender()));
        self->state.schedule();
      },
      [self](work_atom) { self->state.work(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
