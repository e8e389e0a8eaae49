#include "fleet/messages/types.h"

#include "actors/messages/types.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

void know_messages(caf::actor_system_config& config) {
  actors::know_messages(config);
  config.add_message_types<caf::id_block::vigil_fleet>();
}

}  // namespace vigil::fleet
