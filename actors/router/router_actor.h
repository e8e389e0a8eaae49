// Between the cameras and the vision towers: sends patches to the camera's device and what became of them
// back.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/messages.h"
#include "actors/router/patch_gate.h"
#include "actors/status/metrics.h"

namespace vigil::actors {

struct RouterDeps {
  Metrics& metrics;
  spdlog::logger& logger;
};

struct router_state {
  explicit router_state(router_actor::pointer self_pointer) : self(self_pointer) {}

  void take(const FramePatchPtr& patch);
  void route(const Route& route);
  /// The camera's patches go there from now on.
  void begin(const std::string& camera, const vision_actor& device);
  /// As a device says.
  void grant(const std::string& camera, std::uint32_t room);
  void acknowledge(const PatchAck& ack);
  /// A camera joins, or ends, where its windows fill.
  void join_second(const std::string& camera);
  void end_second(const std::string& camera);
  void pass_over(const std::string& camera);
  /// To the camera, if it has an actor.
  void send(const PatchAck& ack);
  camera_actor find(const std::string& camera) const;
  /// Tells a camera's vision actor what the gate says.
  void tell(const std::optional<PatchGate::Told>& told);

  router_actor::pointer self;
  Metrics* metrics = nullptr;
  PatchGate gate;
  /// Where the patches of a camera go.
  std::map<std::string, vision_actor> visions;
  /// And where they go as well, of cameras that move; who answered before, of those that have moved.
  struct Second {
    vision_actor vision;
    SecondGate gate;
  };
  std::map<std::string, Second> seconds;
  std::map<std::string, caf::actor_addr> left;
  /// Who gets the credit and the acknowledgements of a camera. Weak, as the thread of an actor that has ended
  /// lives as long as a handle does.
  std::map<std::string, caf::actor_addr> cameras;
  static inline const char* name = "router";
};

router_actor::behavior_type router(router_actor::stateful_pointer<router_state> self, RouterDeps deps);

}  // namespace vigil::actors
