// The shell around `PatchQueue` and `encode`. Computes for long, so it wants a thread of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/batch_limit.h"
#include "actors/messages/failure_log.h"
#include "actors/messages/messages.h"
#include "actors/messages/watch_book.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/status/work_beat.h"
#include "actors/vision/encode.h"
#include "actors/vision/patch_queue.h"
#include "base/clock.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/answerer.h"

namespace vigil::actors {

struct VisionDeps {
  run::VisionEncoder& encoder;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Patches of one pass at most.
  std::size_t batch = 8;
  /// What it runs on, for the metrics.
  std::string device = {};
};

struct vision_state {
  explicit vision_state(vision_actor::pointer self_pointer) : self(self_pointer) {}

  void join(const WatchPtr& watch, router_actor sender);
  void know(const WatchPtr& watch);
  void take(const FramePatchPtr& patch);
  void work();
  /// Counts and tells what was not encoded, and gives its credit back.
  void tell_failures(const Encoded& encoded);
  /// Patches that arrive while a batch is encoded are taken together by the next.
  void schedule();
  void tick();

  vision_actor::pointer self;
  std::optional<VisionDeps> deps;
  prefill_actor prefill;
  std::optional<PatchQueue> queue;
  WatchBook book;
  std::optional<BatchLimit> limit;
  std::optional<WorkBeat> beat;
  FailureLog failure_log;
  router_actor router;
  bool scheduled = false;
  static inline const char* name = "vision";
};

vision_actor::behavior_type vision(vision_actor::stateful_pointer<vision_state> self, VisionDeps deps,
                                   prefill_actor prefill);

}  // namespace vigil::actors
