// The shell around `Fleet`: spawns the pipeline, restarts cameras, drains in the order of the pipeline.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/logger.h>

#include "actors/alerts/outbox.h"
#include "actors/alerts/publisher.h"
#include "actors/camera/camera.h"
#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/supervisor/fleet.h"
#include "config/clock.h"
#include "engine/window/answerer.h"

namespace vigil::actors {

/// own: each actor that blocks has a thread of its own; scheduled: all run where the system's scheduler says,
/// as tests want it.
enum class Threads : std::uint8_t { own, scheduled };

/// What a pipeline stands on. Everything that is referred to has to outlive the actor system.
struct PipelineDeps {
  std::vector<CameraPtr> cameras;
  /// Play every file once, then drain.
  bool once = false;
  config::Duration grace = config::Settings().shutdown_grace;
  config::Duration retention = config::AlertSettings().retention;
  std::string model_id;
  ReaderFactory open;
  window::VisionEncoder& encoder;
  window::WindowPrefiller& prefiller;
  window::AnswerGenerator& generator;
  Outbox& outbox;
  Publisher& publisher;
  Metrics& metrics;
  StatusBoard& board;
  const config::Clock& clock;
  spdlog::logger& logger;
  /// Of all jitter.
  std::uint64_t seed = 0;
  Threads threads = Threads::own;
  /// Of the windows that are answered; may be empty.
  WindowObserver observer = {};
};

struct supervisor_state {
  explicit supervisor_state(supervisor_actor::pointer self_pointer) : self(self_pointer) {}

  void start_pipeline();
  void start_camera(const std::string& name);
  void tell(const Fleet::Change& change);
  void report(const CameraReport& report);
  void lost(const caf::down_msg& message);
  void tick();
  void reload(const CameraList& list);
  /// Starts and forgets what a reload let go, once it has drained.
  void settle();
  void stop_camera(const std::string& name);
  void stop();
  void end_orphans();
  /// Once every camera's stream has ended, the pipeline is asked to quit from front to back.
  void finish_if_ended();
  void finish_pipeline();
  void answer_waiting();

  supervisor_actor::pointer self;
  std::optional<PipelineDeps> deps;
  std::optional<Fleet> fleet;
  cache_actor cache;
  target_actor target;
  alerts_actor alerts;
  prefill_actor prefill;
  vision_actor vision;
  pruner_actor pruner;
  std::map<caf::actor_addr, std::string> cameras;
  std::map<caf::actor_addr, std::string> stages;
  std::map<std::string, camera_actor> handles;
  bool finishing = false;
  bool complete = false;
  std::vector<caf::typed_response_promise<DrainReport>> waiting;
  std::optional<DrainReport> outcome;
  static inline const char* name = "supervisor";
};

supervisor_actor::behavior_type supervisor(supervisor_actor::stateful_pointer<supervisor_state> self,
                                           PipelineDeps deps);

}  // namespace vigil::actors
