// What every shell does on purpose rather than by CAF's defaults.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include <caf/abstract_actor.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduled_actor.hpp>
#include <pthread.h>
#include <spdlog/logger.h>

#include "actors/messages/fault.h"

namespace vigil::actors {

/// Gives the thread of an actor that has one of its own the actor's name, for `top -H`, debuggers and
/// benches. The threads that it starts for its computations inherit it.
template <class Self>
void name_thread(Self* self) {
  if (self->getf(caf::abstract_actor::is_detached_flag)) pthread_setname_np(pthread_self(), self->name());
}

/// Sets the handlers of an actor, and its thread's name: a message or an error that nobody expects is logged
/// and ignored; an exit message ends the actor whatever its reason; an exception ends it with its text in the
/// log and in the reason that its monitors see (fault.h), after `at_failure`, which must not throw.
template <class Self>
void set_handlers(Self* self, spdlog::logger& logger, std::function<void()> at_failure = {}) {
  name_thread(self);
  const std::string name = self->name();
  self->set_default_handler(
      [&logger, name](caf::scheduled_actor*, caf::message_view&) -> caf::result<caf::message> {
        logger.error("{}: ignored a message that it does not know", name);
        return caf::sec::unexpected_message;
      });
  self->set_error_handler([&logger, name](caf::scheduled_actor* actor, caf::error& error) {
    logger.error("{}: ignored an error: {}", name, actor->system().render(error));
  });
  self->set_down_handler([](caf::scheduled_actor*, caf::down_msg&) {});
  self->set_exit_handler(
      [](caf::scheduled_actor* actor, caf::exit_msg& message) { actor->quit(message.reason); });
  self->set_exception_handler([&logger, name, at_failure = std::move(at_failure)](
                                  caf::scheduled_actor* actor, std::exception_ptr& thrown) -> caf::error {
    caf::error fault = fault_of(thrown);
    logger.error("{}: failed: {}", name, reason_of(fault, actor->system()));
    if (at_failure) at_failure();
    return fault;
  });
}

}  // namespace vigil::actors
