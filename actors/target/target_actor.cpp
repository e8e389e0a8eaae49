#include "actors/target/target_actor.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "actors/messages/log_fields.h"
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
  deps->metrics.requests(RequestKind::explanation, deps->device, batch.size(), queue.size());
  if (batch.empty()) return;
  std::size_t longest = 0;
  for (const ExplainRequest& request : batch)
    longest =
        std::max(longest, static_cast<std::size_t>(request.window->watch->rules[request.rule].max_tokens));
  beat->begins(longest);
  const auto start = deps->clock.now();
  Explained explained = explain(deps->generator, batch);
  const std::chrono::duration<double> spent = deps->clock.now() - start;
  deps->metrics.generated(spent.count(), explained.tokens, explained.passes, explained.later);
  deps->metrics.requests(RequestKind::explanation, deps->device, 0, queue.size());
  if (explained.passes > 0) {
    beat->took(spent.count(), static_cast<std::size_t>(explained.passes));
  } else {
    beat->idle();
  }
  if (explained.too_many.empty()) {
    limit->fitted(batch.size());
  } else {
    limit->too_many(batch.size());
    deps->logger.error("target: {} answers have no text, batches of at most {} from now on: {}", batch.size(),
                       limit->now(), explained.too_many);
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const WatchSettings& watch = *batch[i].window->watch;
    if (!explained.failures[i].empty() && explained.too_many.empty()) {
      const LogFields about(watch);
      deps->logger.error("target: camera {}: no explanation for rule {}: {}", watch.name,
                         watch.rules[batch[i].rule].name, explained.failures[i]);
    }
    self->send<caf::message_priority::high>(
        askers[i], Explanation{batch[i].ticket, explained.texts[i], explained.failures[i]});
  }
  schedule();
}

void target_state::tick() {
  beat->idle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
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
  self->state.beat.emplace(deps.board, deps.device + " target");
  self->send(self, tick_atom_v);
  return {
      [self](const ExplainRequest& request) {
        self->state.queue.emplace_back(request, caf::actor_cast<alerts_actor>(self->current_sender()));
        self->state.schedule();
      },
      [self](work_atom) { self->state.work(); },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
