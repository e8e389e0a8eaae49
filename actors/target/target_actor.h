// The shell around `explain`. Computes for long, so it wants a thread of its own. A drafter that helps it has
// its seat behind AnswerGenerator.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/batch_limit.h"
#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/status/work_beat.h"
#include "base/clock.h"
#include "engine/stream/answerer.h"

namespace vigil::actors {

struct TargetDeps {
  stream::AnswerGenerator& generator;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Answers that are generated together at most.
  std::size_t batch = 16;
  /// What it runs on, for the metrics.
  std::string device = {};
};

struct target_state {
  explicit target_state(target_actor::pointer self_pointer) : self(self_pointer) {}

  void work();
  /// Requests that arrive while a batch is generated are taken together by the next.
  void schedule();
  void tick();

  target_actor::pointer self;
  std::optional<TargetDeps> deps;
  /// Bounded by the KV cache, in which each has its window.
  std::deque<std::pair<ExplainRequest, alerts_actor>> queue;
  std::optional<BatchLimit> limit;
  std::optional<WorkBeat> beat;
  bool scheduled = false;
  static inline const char* name = "target";
};

target_actor::behavior_type target(target_actor::stateful_pointer<target_state> self, TargetDeps deps);

}  // namespace vigil::actors
