#include "fleet/turns/turns_actor.h"

#include <utility>

#include <caf/send.hpp>

#include "actors/messages/shell.h"

namespace vigil::fleet {

void turns_state::tell(const WindowTurns::News& news) {
  for (const auto& [device, window] : news.told)
    caf::send_as<caf::message_priority::high>(links[device], alerts, window);
  for (const auto& [device, window] : news.dropped)
    if (window->id) self->send(links[device], actors::Done{*window->id});
  for (const std::string& camera : news.ended)
    self->send<caf::message_priority::high>(alerts, actors::end_atom_v, camera);
  std::set<std::uint64_t> filled = turns.filled();
  if (filled == told_filled) return;
  told_filled = std::move(filled);
  deps->filled(told_filled);
}

turns_actor::behavior_type turns(turns_actor::stateful_pointer<turns_state> self, TurnsDeps deps,
                                 actors::alerts_actor alerts) {
  actors::set_handlers(self, deps.logger);
  self->state.deps.emplace(std::move(deps));
  self->state.alerts = std::move(alerts);
  return {
      [self](const std::string& device, const actors::WindowAnswersPtr& window) {
        self->state.links[device] = caf::actor_cast<actors::stream_actor>(self->current_sender());
        self->state.tell(self->state.turns.take(device, window));
      },
      [self](end_atom, const std::string& device, const std::string& camera) {
        if (self->state.turns.end(device, camera))
          self->send<caf::message_priority::high>(self->state.alerts, actors::end_atom_v, camera);
      },
      [self](attach_atom, const std::string& device) { self->state.turns.up(device); },
      [self](detach_atom, const std::string& device) {
        self->state.tell(self->state.turns.down(device));
        self->state.links.erase(device);
      },
      [self](const PlacesPtr& places) { self->state.tell(self->state.turns.plan(*places)); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::fleet
