// The types of messages that nodes tell each other, for an actor system (actors/messages/types.h).
#pragma once

#include <caf/actor_system_config.hpp>

namespace vigil::fleet {

/// Those of the pipeline among them. For the configuration of a system that does not run yet.
void know_messages(caf::actor_system_config& config);

}  // namespace vigil::fleet
