// Owns one device: its engine, and the actors that compute with it. The listener of these, with a plain
// `Recovery` for when to start them again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/device/engine_parts.h"
#include "actors/device/recovery.h"
#include "actors/messages/messages.h"
#include "actors/messages/spawn.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "base/clock.h"

namespace vigil::actors {

struct DeviceDeps {
  DeviceSlot slot;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  Threads threads = Threads::own;
  PipelineObserver observer = {};
  /// As of ExecutorDeps.
  tokens_actor elsewhere = {};
  CacheAccess cache = {};
  std::uint64_t seed = 0;
};

/// How long the other actors may take to end when one has failed: longer than a pass takes.
constexpr std::chrono::seconds kDevicePatience{30};

struct device_state {
  explicit device_state(device_actor::pointer self_pointer) : self(self_pointer) {}

  void start();
  /// One of them has ended.
  void ended(const caf::down_msg& message);
  /// The first of them failed: the others have to end, too.
  void fail(const std::string& stage, const caf::error& reason);
  /// Tells all to end.
  void abandon();
  /// Nothing uses the engine any more.
  void let_go();
  void try_again_later();
  void make_again();
  /// Nothing will compute here any more.
  void lose(const std::string& why);
  void give_up(std::uint32_t engine);
  void stop();
  void report(DeviceState state);

  device_actor::pointer self;
  std::optional<DeviceDeps> deps;
  device_listener_actor listener;
  answers_actor answers;
  executor_actor executor;
  /// Null if answers go on where they were asked.
  target_actor target;
  /// Null if the executor encodes.
  tower_actor tower;
  /// Those that have not ended.
  std::map<caf::actor_addr, std::string> running;
  Recovery recovery;
  /// Counts the engines.
  std::uint32_t engine = 0;
  DeviceState state = DeviceState::up;
  /// What its engine has.
  bool has_tower = false, has_desk = false;
  /// Why it is not up.
  std::string reason;
  bool stopping = false;
  static inline const char* name = "device";
};

device_actor::behavior_type device(device_actor::stateful_pointer<device_state> self, DeviceDeps deps,
                                   answers_actor answers, device_listener_actor listener);

}  // namespace vigil::actors
