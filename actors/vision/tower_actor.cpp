#include "actors/vision/tower_actor.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "actors/messages/shell.h"
#include "actors/vision/encode.h"
#include "actors/vision/patch_queue.h"

namespace vigil::actors {

EncodedPtr tower_state::encode(const std::vector<FramePatchPtr>& patches) {
  const auto load = static_cast<std::size_t>(std::ceil(load_of(patches)));
  beat->begins(WorkBeat::Work::patches, load);
  auto encoded = std::make_shared<Encoded>(actors::encode(*deps->encoder, deps->clock, patches));
  const WorkSpan& span = encoded->span;
  beat->took(WorkBeat::Work::patches, std::chrono::duration<double>(span.end - span.begin).count(), load);
  if (deps->observer.piece) deps->observer.piece("vision", span);
  return encoded;
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
      [self](const PatchBatchPtr& patches) {
        const auto asker = caf::actor_cast<executor_actor>(self->current_sender());
        self->send(asker, self->state.encode(*patches));
      },
      [self](tick_atom) { self->state.tick(); },
  };
}

}  // namespace vigil::actors
