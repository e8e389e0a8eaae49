#include "actors/device/device_actor.h"

#include <exception>
#include <utility>

#include "actors/device/executor_actor.h"
#include "actors/messages/shell.h"
#include "actors/target/target_actor.h"
#include "actors/vision/tower_actor.h"

namespace vigil::actors {

void device_state::start() {
  const EngineParts& parts = deps->slot.engine;
  has_tower = parts.encoder != nullptr;
  has_desk = parts.desk != nullptr;
  if (parts.decoder) {
    target = spawn(self, deps->threads, actors::target,
                   TargetDeps{.desk = parts.decoder,
                              .clock = deps->clock,
                              .metrics = deps->metrics,
                              .board = deps->board,
                              .logger = deps->logger,
                              .device = deps->slot.name,
                              .observer = deps->observer},
                   answers);
    running.emplace(target.address(), "target");
  }
  if (parts.overlap) {
    tower = spawn(self, deps->threads, actors::tower,
                  TowerDeps{.encoder = parts.encoder,
                            .clock = deps->clock,
                            .board = deps->board,
                            .logger = deps->logger,
                            .device = deps->slot.name,
                            .observer = deps->observer});
    running.emplace(tower.address(), "tower");
  }
  EngineParts own = parts;
  own.decoder = nullptr;
  executor = spawn(self, deps->threads, actors::executor,
                   ExecutorDeps{.engine = std::move(own),
                                .clock = deps->clock,
                                .metrics = deps->metrics,
                                .board = deps->board,
                                .logger = deps->logger,
                                .device = deps->slot.name,
                                .observer = deps->observer,
                                .elsewhere = deps->elsewhere,
                                .cache = deps->cache,
                                .seed = deps->seed + engine},
                   answers, target, tower);
  running.emplace(executor.address(), "executor");
  ++engine;
  recovery.works(deps->clock.now());
  reason.clear();
  report(DeviceState::up);
}

void device_state::ended(const caf::down_msg& message) {
  const auto entry = running.find(message.source);
  if (entry == running.end()) return;
  const std::string stage = entry->second;
  running.erase(entry);
  deps->board.silent(deps->slot.name + ' ' + stage);
  if (!stopping && state == DeviceState::up) fail(stage, message.reason);
  if (!running.empty()) return;
  let_go();
  if (stopping) self->quit();
}

void device_state::fail(const std::string& stage, const caf::error& why) {
  const std::string text = "the " + stage + " actor failed: " + reason_of(why, self->system());
  deps->metrics.device_failed(deps->slot.name);
  if (is_device_lost(why)) {
    lose(text);
  } else {
    deps->logger.error("{}: {}; its engine is made again", deps->slot.name, text);
    reason = text;
    report(DeviceState::restarting);
  }
  abandon();
  self->delayed_send(self, kDevicePatience, giveup_atom_v, engine);
}

void device_state::let_go() {
  executor = nullptr;
  target = nullptr;
  tower = nullptr;
  deps->slot.engine = {};
  if (!stopping && state == DeviceState::restarting) try_again_later();
}

void device_state::try_again_later() {
  const auto now = deps->clock.now();
  const auto at = deps->slot.again ? recovery.failed(now) : std::nullopt;
  if (!at) return lose(reason);
  self->delayed_send(self, *at - now, work_atom_v);
}

void device_state::make_again() {
  if (stopping || state != DeviceState::restarting || !running.empty()) return;
  try {
    deps->slot.engine = deps->slot.again();
    start();
  } catch (const std::exception& error) {
    deps->logger.error("{}: its engine cannot be made: {}", deps->slot.name, error.what());
    reason = error.what();
    abandon();
    // If one of its actors is there, when that has ended.
    if (running.empty()) let_go();
    return;
  }
  deps->logger.warn("{}: works again", deps->slot.name);
}

void device_state::abandon() {
  if (executor) self->send_exit(executor, caf::exit_reason::user_shutdown);
  if (target) self->send_exit(target, caf::exit_reason::user_shutdown);
  if (tower) self->send_exit(tower, caf::exit_reason::user_shutdown);
}

void device_state::lose(const std::string& why) {
  deps->logger.error("{}: lost: {}", deps->slot.name, why);
  reason = why;
  report(DeviceState::lost);
}

void device_state::give_up(std::uint32_t which) {
  if (which != engine || running.empty()) return;
  // Nothing waits for them any more.
  for (const auto& [address, stage] : running) deps->board.silent(deps->slot.name + ' ' + stage);
  if (state != DeviceState::restarting) return;
  lose(reason + "; its " + running.begin()->second + " actor does not end");
}

void device_state::stop() {
  stopping = true;
  if (running.empty()) return self->quit();
  if (state != DeviceState::up) return;  // they were told to end
  // Plain messages, not exits, which would overtake what was sent before.
  self->send(executor, stop_atom_v);
  if (target) self->send(target, stop_atom_v);
  // What it was given is for nobody any more, if there is anything.
  if (tower) self->send_exit(tower, caf::exit_reason::user_shutdown);
}

void device_state::report(DeviceState entered) {
  state = entered;
  const bool is_up = state == DeviceState::up;
  self->send(listener, DeviceReport{deps->slot.name, state, reason,
                                    is_up && has_tower ? vision_actor(executor) : vision_actor(),
                                    is_up && has_desk ? tokens_actor(executor) : tokens_actor()});
}

device_actor::behavior_type device(device_actor::stateful_pointer<device_state> self, DeviceDeps deps,
                                   answers_actor answers, device_listener_actor listener) {
  set_handlers(self, deps.logger, [self] { self->state.abandon(); });
  device_state& state = self->state;
  state.answers = std::move(answers);
  state.listener = std::move(listener);
  state.deps.emplace(std::move(deps));
  self->set_down_handler([self](caf::down_msg& message) { self->state.ended(message); });
  state.start();
  return {
      [self](work_atom) { self->state.make_again(); },
      [self](giveup_atom, std::uint32_t engine) { self->state.give_up(engine); },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::actors
