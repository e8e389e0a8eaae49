// Between the cameras and the vision towers: where patches are chosen, and sent to the camera's device. It
// keeps all of them so far; what a policy leaves out will not reach vision.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/messages.h"
#include "actors/pruner/patch_gate.h"
#include "actors/status/metrics.h"

namespace vigil::actors {

struct PrunerDeps {
  Metrics& metrics;
  spdlog::logger& logger;
};

struct pruner_state {
  explicit pruner_state(pruner_actor::pointer self_pointer) : self(self_pointer) {}

  void take(const FramePatchPtr& patch);
  void route(const Route& route);
  void grant(const std::string& camera, std::uint32_t credits);
  /// Tells a camera's vision actor what the gate says.
  void tell(const std::optional<PatchGate::Told>& told);

  pruner_actor::pointer self;
  Metrics* metrics = nullptr;
  PatchGate gate;
  /// Where the patches of a camera go.
  std::map<std::string, vision_actor> visions;
  /// Who gets the credit of a camera. Weak, as the thread of an actor that has ended lives as long as a
  /// handle does.
  std::map<std::string, caf::actor_addr> cameras;
  static inline const char* name = "pruner";
};

pruner_actor::behavior_type pruner(pruner_actor::stateful_pointer<pruner_state> self, PrunerDeps deps);

}  // namespace vigil::actors
