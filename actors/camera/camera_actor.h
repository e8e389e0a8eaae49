// The shell around `Camera`. Blocks in its source, so it wants a thread of its own.
#pragma once

#include <memory>
#include <optional>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/camera/camera.h"
#include "actors/camera/frame_rate.h"
#include "actors/messages/messages.h"
#include "actors/status/metrics.h"

namespace vigil::actors {

struct CameraDeps {
  ReaderFactory open;
  const config::Clock& clock;
  Metrics& metrics;
  spdlog::logger& logger;
  std::shared_ptr<Pulse> pulse;
};

struct camera_state : CameraListener {
  explicit camera_state(camera_actor::pointer self_pointer) : self(self_pointer) {}

  void on_state(CameraState state, const std::string& reason) override;
  void on_frame() override;
  void on_dropped(std::uint64_t frames, const char* reason) override;
  void on_reconnect() override;
  void on_damaged_packets(std::uint64_t packets) override;

  void advance();

  camera_actor::pointer self;
  CameraPtr settings;
  std::optional<CameraDeps> deps;
  pruner_actor pruner;
  supervisor_actor supervisor;
  std::optional<Camera> camera;
  FrameRate rate;
  bool waits_for_credit = false;
  static inline const char* name = "camera";
};

camera_actor::behavior_type camera(camera_actor::stateful_pointer<camera_state> self, CameraOptions options,
                                   CameraDeps deps, pruner_actor pruner, supervisor_actor supervisor);

}  // namespace vigil::actors
