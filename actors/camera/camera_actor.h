// The shell around `Camera`. Blocks in its source, so it wants a thread of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/camera/camera.h"
#include "actors/camera/frame_rate.h"
#include "actors/messages/messages.h"
#include "actors/messages/watch_book.h"
#include "actors/status/metrics.h"

namespace vigil::actors {

struct CameraDeps {
  ReaderFactory open;
  const base::Clock& clock;
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
  void alter(const CameraPtr& now, const WatchPtr& watch);
  /// The settings that it refers to first, unless they were sent before.
  void send(const FramePatchPtr& patch);

  camera_actor::pointer self;
  std::string camera_name;
  /// What patches that are not sent yet may refer to, and what was sent last.
  WatchBook book;
  std::uint64_t sent_version = 0;
  std::optional<CameraDeps> deps;
  router_actor router;
  supervisor_actor supervisor;
  std::optional<Camera> camera;
  FrameRate rate;
  bool waits_for_credit = false;
  static inline const char* name = "camera";
};

camera_actor::behavior_type camera(camera_actor::stateful_pointer<camera_state> self, CameraOptions options,
                                   CameraDeps deps, router_actor router, supervisor_actor supervisor);

}  // namespace vigil::actors
