// The shell around `WindowDesk`, `WindowFit` and `ask`. Computes for long, so it wants a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/batch_limit.h"
#include "actors/messages/failure_log.h"
#include "actors/messages/messages.h"
#include "actors/prefill/ask.h"
#include "actors/prefill/window_desk.h"
#include "actors/prefill/window_fit.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/status/work_beat.h"
#include "base/clock.h"
#include "engine/stream/answerer.h"

namespace vigil::actors {

struct PrefillDeps {
  stream::WindowPrefiller& prefiller;
  int frames_per_patch = 2;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Windows of one batch at most.
  std::size_t batch = 8;
  /// What it runs on, for the metrics.
  std::string device = {};
  /// May be empty.
  WindowObserver observer = {};
};

struct prefill_state {
  explicit prefill_state(prefill_actor::pointer self_pointer) : self(self_pointer) {}

  void join(const WatchPtr& watch, vision_actor sender);
  void take(const VisualPatchPtr& patch);
  /// Tells whether the windows of the camera can be answered, once that is known.
  void tell_fit(const VisualPatchPtr& patch);
  /// Makes the next batch and asks for room for it.
  void work();
  /// There is room for the batch.
  void answer();
  void compute();
  /// Counts and tells the windows that were not answered.
  void tell_failures(const AskedWindows& asked);
  /// There will be no answers any more: counts the windows that wait for them.
  void give_up();
  void tell_ended(const WindowDesk::Batch& batch);
  void schedule();
  void tick();

  prefill_actor::pointer self;
  std::optional<PrefillDeps> deps;
  vision_actor vision;
  alerts_actor alerts;
  cache_actor cache;
  std::optional<WindowDesk> desk;
  std::optional<BatchLimit> limit;
  std::optional<WorkBeat> beat;
  std::optional<WindowFit> fit;
  FailureLog failure_log;
  /// Waits for room in the cache.
  std::optional<WindowDesk::Batch> waiting;
  /// Windows that alerts can still take.
  std::size_t credits = 0;
  bool scheduled = false;
  static inline const char* name = "prefill";
};

prefill_actor::behavior_type prefill(prefill_actor::stateful_pointer<prefill_state> self, PrefillDeps deps,
                                     alerts_actor alerts, target_actor target, cache_actor cache);

}  // namespace vigil::actors
