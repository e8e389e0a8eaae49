// The shell around `VisionDesk` and `WindowDesk`, and the one thread of their device, but for a tower that
// has its own: computes for long, so it wants one of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/device/backlog.h"
#include "actors/device/engine_parts.h"
#include "actors/messages/failure_log.h"
#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/status/work_beat.h"
#include "actors/stream/memory_desk.h"
#include "actors/stream/window_desk.h"
#include "actors/target/explanations.h"
#include "actors/vision/vision_desk.h"
#include "base/clock.h"
#include "engine/run/executor.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

struct ExecutorDeps {
  /// All but the decoder. Its part of the engine is the executor's as long as it lives: whoever started it
  /// may be gone before a pass ends.
  EngineParts engine;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Whole patches of one pass of the vision tower at most, or as much of more of them.
  std::size_t patches = 8;
  /// What it runs on, for logs and metrics.
  std::string device = {};
  PipelineObserver observer = {};
  /// Takes the visual tokens of cameras whose streams are on other devices: of all of them, if the engine has
  /// no desk. Null: there are none.
  tokens_actor elsewhere = {};
  CacheAccess cache = {};
  /// Of what is random there.
  std::uint64_t seed = 0;
};

struct executor_state {
  explicit executor_state(executor_actor::pointer self_pointer) : self(self_pointer) {}

  void start(ExecutorDeps deps, answers_actor answers, target_actor target, tower_actor tower);
  void join(const WatchPtr& watch, router_actor sender);
  void know(const WatchPtr& watch);
  void take(const FramePatchPtr& patch);
  void explain(const Explain& request);
  /// Runs the next piece.
  void work();
  /// What came of the batch that is at the tower.
  void take_back(Encoded& encoded);
  /// Visual tokens that another device has made.
  void join(const WatchPtr& watch, std::uint32_t session, tokens_sender_actor sender);
  void take(const VisualPatchPtr& patch, const tokens_sender_actor& sender);
  /// Gives a text to another node, or explains it here (executor_texts.cpp).
  void carry(const Explain& request);
  /// Goes on with one of another node.
  void go_on(const CarriedTextPtr& text);
  /// What became of those that went to another one.
  void hear(const TokensAck& ack);
  // For the cache (executor_past.cpp).
  void know_here(const WatchPtr& watch);
  void remember(const WatchPtr& watch);
  void want(const WantedForms& wanted);
  void show(const Show& show);
  void recall(const Recall& recall);
  void forget(std::uint64_t ticket);
  void tell_past(const std::vector<std::string>& ended);
  /// Sends on what has come of whatever was done, and goes on if there is more to do.
  void settle();
  void tell_encoded();
  /// To another device's stream.
  void send_on(const VisualPatchPtr& patch, const PatchAck& ack, base::Clock::TimePoint now);
  /// Whether its acknowledgement is to come from there.
  bool is_sent_on(const PatchAck& ack) const;
  WindowDesk::Taken push(const VisualPatch& patch);
  void tell_credits(const WindowDesk::News& news);
  void tell_answered(const WindowDesk::News& news);
  void tell_told(const WindowDesk::News& news);
  void tell_budgets(const WindowDesk::News& news);
  void tell_audits(const WindowDesk::News& news);
  void tell_usage();
  void tick();
  void schedule();
  /// Nothing will be computed any more: counts the windows that wait for it.
  void give_up();

  executor_actor::pointer self;
  std::optional<ExecutorDeps> deps;
  router_actor router;
  answers_actor answers;
  /// Null if answers go on here.
  target_actor target;
  /// Null if patches are encoded here.
  tower_actor tower;
  /// Nothing where the engine does not have this half.
  std::optional<VisionDesk> vision;
  /// Nothing where nothing is remembered. Before what hands it on.
  std::optional<MemoryDesk> past;
  std::optional<WindowDesk> windows;
  /// A camera that is encoded here, and whose stream is elsewhere.
  struct Outgoing {
    std::uint32_t session = 0;
    struct Patch {
      PatchAck ack;
      std::uint64_t frames = 0;
    };
    /// What was sent there and not acknowledged, by generation and sequence.
    std::map<std::pair<std::uint32_t, std::uint64_t>, Patch> patches;
  };
  std::map<std::string, Outgoing> outgoing;
  std::uint32_t sessions = 0;
  /// Cameras that go elsewhere from their next join on, of an engine that has a desk.
  std::set<std::string> apart;
  /// A camera whose stream is here, and which is encoded elsewhere.
  struct Incoming {
    tokens_sender_actor sender;
    std::uint32_t session = 0;
  };
  std::map<std::string, Incoming> incoming;
  std::optional<run::Executor> executor;
  std::optional<WorkBeat> beat;
  Explanations explanations;
  FailureLog encode_failures, window_failures, page_failures;
  Backlog backlog;
  bool scheduled = false;
  static inline const char* name = "executor";
};

/// `target`: null if the desk goes on with answers itself. `tower`: null if patches are encoded here.
executor_actor::behavior_type executor(executor_actor::stateful_pointer<executor_state> self,
                                       ExecutorDeps deps, answers_actor answers, target_actor target,
                                       tower_actor tower);

}  // namespace vigil::actors
