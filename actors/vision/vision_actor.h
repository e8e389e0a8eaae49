// The shell around `PatchQueue` and `encode`. Computes for long, so it wants a thread of its own.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "actors/vision/patch_queue.h"
#include "config/clock.h"
#include "engine/window/answerer.h"

namespace vigil::actors {

struct VisionDeps {
  window::VisionEncoder& encoder;
  const config::Clock& clock;
  Metrics& metrics;
  spdlog::logger& logger;
  /// Patches of one pass at most.
  std::size_t batch = 8;
};

struct vision_state {
  explicit vision_state(vision_actor::pointer self_pointer) : self(self_pointer) {}

  void join(const CameraPtr& camera, std::uint32_t generation, camera_actor sender);
  void take(const FramePatchPtr& patch);
  void work();
  /// Patches that arrive while a batch is encoded are taken together by the next.
  void schedule();

  vision_actor::pointer self;
  std::optional<VisionDeps> deps;
  answer_actor answer;
  std::optional<PatchQueue> queue;
  std::map<std::string, camera_actor> cameras;
  bool scheduled = false;
  static inline const char* name = "vision";
};

vision_actor::behavior_type vision(vision_actor::stateful_pointer<vision_state> self, VisionDeps deps,
                                   answer_actor answer);

}  // namespace vigil::actors
