// Between the cameras and the vision tower: where patches are chosen. It keeps all of them so far; what a
// policy leaves out will not reach vision.
#pragma once

#include <map>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/messages.h"

namespace vigil::actors {

struct PrunerDeps {
  spdlog::logger& logger;
};

struct pruner_state {
  explicit pruner_state(pruner_actor::pointer self_pointer) : self(self_pointer) {}

  pruner_actor::pointer self;
  vision_actor vision;
  /// Who gets the credit of a camera.
  std::map<std::string, camera_actor> cameras;
  static inline const char* name = "pruner";
};

pruner_actor::behavior_type pruner(pruner_actor::stateful_pointer<pruner_state> self, PrunerDeps deps,
                                   vision_actor vision);

}  // namespace vigil::actors
