// The shell around `encode` where a device's vision tower has a thread of its own. Computes for long, so it
// wants one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/messages.h"
#include "actors/status/status_board.h"
#include "actors/status/work_beat.h"
#include "base/clock.h"
#include "engine/run/vision_encoder.h"

namespace vigil::actors {

struct TowerDeps {
  /// Its own as long as it lives: whoever started it may be gone before a pass ends.
  std::shared_ptr<run::VisionEncoder> encoder;
  const base::Clock& clock;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Whose patches it encodes, for logs and metrics.
  std::string device = {};
  PipelineObserver observer = {};
};

struct tower_state {
  explicit tower_state(tower_actor::pointer self_pointer) : self(self_pointer) {}

  EncodedPtr encode(const std::vector<FramePatchPtr>& patches);
  void tick();

  tower_actor::pointer self;
  std::optional<TowerDeps> deps;
  std::optional<WorkBeat> beat;
  static inline const char* name = "tower";
};

tower_actor::behavior_type tower(tower_actor::stateful_pointer<tower_state> self, TowerDeps deps);

}  // namespace vigil::actors
