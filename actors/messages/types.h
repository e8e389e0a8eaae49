// The types of messages.h, for an actor system. One source makes all that CAF needs of them: it takes seconds
// to compile.
#pragma once

#include <caf/actor_system_config.hpp>

namespace vigil::actors {

/// For the configuration of a system that does not run yet.
void know_messages(caf::actor_system_config& config);

}  // namespace vigil::actors
