// How every actor system of Vigil is set up.
#pragma once

#include <cstddef>

#include <caf/actor_system_config.hpp>

namespace vigil::cluster {

/// The messages' types are the business of whoever knows them: call `add_message_types` before the system
/// starts.
class SystemConfig : public caf::actor_system_config {
 public:
  /// `threads`: for the actors that share them; those that block or compute for long have their own.
  explicit SystemConfig(std::size_t threads = 2);
};

}  // namespace vigil::cluster
