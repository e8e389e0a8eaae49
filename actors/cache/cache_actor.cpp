#include "actors/cache/cache_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::actors {

void cache_state::serve() {
  for (const std::uint64_t request : book->grant()) {
    const auto asker = askers.extract(request);
    self->send(asker.mapped(), room_atom_v);
  }
  deps->metrics.kv_usage(deps->tier, deps->device, book->usage());
}

cache_actor::behavior_type cache(cache_actor::stateful_pointer<cache_state> self, CacheDeps deps) {
  set_handlers(self, deps.logger);
  self->state.book.emplace(deps.room);
  self->state.deps.emplace(std::move(deps));
  self->state.serve();
  return {
      [self](reserve_atom, std::int64_t tokens) {
        cache_state& state = self->state;
        state.askers[state.requests] = caf::actor_cast<prefill_actor>(self->current_sender());
        state.book->reserve(state.requests++, tokens);
        state.serve();
      },
      [self](release_atom, std::int64_t tokens) {
        self->state.book->release(tokens);
        self->state.serve();
      },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
