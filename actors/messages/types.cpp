#include "actors/messages/types.h"

#include "actors/messages/inspect.h"
#include "actors/messages/messages.h"

namespace vigil::actors {

void know_messages(caf::actor_system_config& config) {
  config.add_message_types<caf::id_block::vigil>();
}

}  // namespace vigil::actors
