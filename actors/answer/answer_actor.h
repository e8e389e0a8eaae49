// The shell around `AnswerDesk` and `answer`. Computes for long, so it wants a thread of its own.
#pragma once

#include <cstddef>
#include <optional>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/answer/answer_desk.h"
#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "config/clock.h"
#include "engine/window/answerer.h"

namespace vigil::actors {

struct AnswerDeps {
  window::WindowAnswerer& answerer;
  int frames_per_patch = 2;
  const config::Clock& clock;
  Metrics& metrics;
  spdlog::logger& logger;
  /// Windows of one batch at most.
  std::size_t batch = 8;
};

struct answer_state {
  explicit answer_state(answer_actor::pointer self_pointer) : self(self_pointer) {}

  void join(const CameraPtr& camera, vision_actor sender);
  void take(const VisualPatchPtr& patch);
  void work();
  void schedule();

  answer_actor::pointer self;
  std::optional<AnswerDeps> deps;
  vision_actor vision;
  alerts_actor alerts;
  std::optional<AnswerDesk> desk;
  /// Windows that alerts can still take.
  std::size_t credits = 0;
  bool scheduled = false;
  static inline const char* name = "answer";
};

answer_actor::behavior_type answer(answer_actor::stateful_pointer<answer_state> self, AnswerDeps deps,
                                   alerts_actor alerts);

}  // namespace vigil::actors
