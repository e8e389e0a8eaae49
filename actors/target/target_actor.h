// The shell around a desk that goes on with texts of another device. Computes for long, so it wants a thread
// of its own. A drafter that helps it has its seat behind the desk.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/status/work_beat.h"
#include "actors/target/explanations.h"
#include "base/clock.h"
#include "engine/run/executor.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

struct TargetDeps {
  /// Its own as long as it lives: whoever started it may be gone before a pass ends.
  std::shared_ptr<stream::StreamDesk> desk;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Whose answers it goes on with, for logs and metrics.
  std::string device = {};
  PipelineObserver observer = {};
};

struct target_state {
  explicit target_state(target_actor::pointer self_pointer) : self(self_pointer) {}

  void take(const LentTextPtr& text);
  /// Tells what became of a text, and gives it back.
  void tell(const stream::DeskNews::Told& text);
  void work();
  void settle();
  void schedule();
  void tick();

  target_actor::pointer self;
  std::optional<TargetDeps> deps;
  answers_actor answers;
  /// Of the texts that were lent. Weak, as it holds this one's handle.
  caf::actor_addr lender;
  std::optional<run::Executor> executor;
  std::optional<WorkBeat> beat;
  Explanations explanations;
  bool scheduled = false;
  static inline const char* name = "target";
};

target_actor::behavior_type target(target_actor::stateful_pointer<target_state> self, TargetDeps deps,
                                   answers_actor answers);

}  // namespace vigil::actors
