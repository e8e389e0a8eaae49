#include "actors/vision/tower_actor.h"

#include <chrono>
#include <utility>

#include "actors/messages/shell.h"
#include "actors/vision/tower_batch.h"

namespace vigil::actors {

TowerResultPtr tower_state::encode(const TowerBatch& batch) {
  beat->begins(WorkBeat::Work::patches, batch.patches.size());
  auto result = std::make_shared<TowerResult>();
  result->encoded = actors::encode(*deps->encoder, deps->clock, batch.patches);
  const WorkSpan& span = result->encoded.span;
  beat->took(WorkBeat::Work::patches, std::chrono::duration<double>(span.end - span.begin).count(),
             batch.patches.size());
  if (deps->observer.piece) deps->observer.piece("vision", span);
  return result;
}

void tower_state::tick() {
  beat->idle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
}

tower_actor::behavior_type tower(tower_actor::stateful_pointer<tower_state> self, TowerDeps deps) {
  set_handlers(self, deps.logger);
  tower_state& state = self->state;
  state.beat.emplace(deps.board, deps.device + " tower");
  state.deps.emplace(std::move(deps));
  self->send(self, tick_atom_v);
  return {
      [self](const TowerBatchPtr& batch) {
        const auto asker = caf::actor_cast<executor_actor>(self->current_sender());
        self->send(asker, self->state.encode(*batch));
      },
      [self](tick_atom) { self->state.tick(); },
  };
}

}  // namespace vigil::actors
