// An actor, as threads that are no actors ask it.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/spawn_options.hpp>

#include "base/duration.h"

namespace vigil::services {

/// Waits for the answer, a `Told`; nothing if the actor is gone, refuses, or takes too long.
template <class Told, class Actor, class... Question>
std::optional<Told> ask_actor(caf::actor_system& system, const Actor& actor, base::Duration patience,
                              const Question&... question) {
  const auto told = std::make_shared<std::promise<std::optional<Told>>>();
  std::future<std::optional<Told>> answer = told->get_future();
  // Hidden, since whoever waits for the pipeline's actors must not wait for somebody who asks; a scoped_actor
  // is counted even if it is hidden.
  system.spawn<caf::hidden>([told, patience, actor, question...](caf::event_based_actor* self) {
    self->request(actor, patience, question...)
        .then([told](Told& came) { told->set_value(std::move(came)); },
              [told](const caf::error&) { told->set_value(std::nullopt); });
  });
  // Where nothing is scheduled any more, no actor would see the time pass.
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace vigil::services
