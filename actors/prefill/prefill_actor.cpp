#include "actors/prefill/prefill_actor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <caf/send.hpp>

#include "actors/messages/log_fields.h"
#include "actors/messages/shell.h"

namespace vigil::actors {

void prefill_state::join(const WatchPtr& watch, vision_actor sender) {
  vision = std::move(sender);
  self->send(vision, grant_atom_v, watch->name, desk->join(watch));
}

void prefill_state::take(const VisualPatchPtr& patch) {
  tell_fit(patch);
  const WindowDesk::Taken taken = desk->push(patch);
  if (taken.refused) {
    deps->metrics.frames_dropped(patch->watch.camera, "late", static_cast<std::uint64_t>(patch->frames));
  }
  if (taken.overtaken > 0) deps->metrics.windows("overtaken", taken.overtaken);
  if (taken.credits > 0) self->send(vision, grant_atom_v, patch->watch.camera, taken.credits);
  schedule();
}

void prefill_state::tell_fit(const VisualPatchPtr& patch) {
  const WatchPtr watch = desk->watch(*patch);
  const auto trouble = watch ? fit->check(patch, watch) : std::nullopt;
  if (!trouble) return;
  deps->board.remark(watch->name, *trouble);
  const LogFields about(*watch);
  if (!trouble->empty()) deps->logger.warn("prefill: camera {}: {}", watch->name, *trouble);
}

void prefill_state::work() {
  scheduled = false;
  if (credits == 0 || waiting) return;
  std::int64_t tokens = 0;
  WindowDesk::Batch batch = desk->pop(std::min(limit->now(), credits), [&](const DueWindow& window) {
    const std::int64_t more = room_for(deps->prefiller, window);
    if (tokens > 0 && tokens + more > deps->prefiller.room()) return false;
    tokens += more;
    return true;
  });
  deps->metrics.queue_depth("prefill", desk->size(), deps->device);
  deps->metrics.requests(RequestKind::window, deps->device, 0, desk->size() + batch.windows.size());
  if (batch.windows.empty()) return tell_ended(batch);
  waiting = std::move(batch);
  self->send(cache, reserve_atom_v, tokens);
}

void prefill_state::answer() {
  try {
    compute();
  } catch (...) {
    give_up();
    throw;
  }
}

void prefill_state::compute() {
  // Until they are answered they wait, so that they are counted if the device fails.
  const WindowDesk::Batch& batch = *waiting;
  deps->metrics.requests(RequestKind::window, deps->device, batch.windows.size(), desk->size());
  beat->begins(batch.windows.size());
  const auto start = deps->clock.now();
  const AskedWindows asked = ask(deps->prefiller, batch.windows, [to = cache](std::int64_t tokens) {
    caf::anon_send(to, release_atom_v, tokens);
  });
  const auto end = deps->clock.now();
  std::int64_t prompt_tokens = 0;
  std::int64_t reused = 0;
  for (const WindowAnswersPtr& window : asked.windows) {
    for (const stream::Answer& each : window->answers) {
      prompt_tokens += each.prompt_tokens;
      // The first of a window's questions has computed what they share.
      if (&each != &window->answers.front()) reused += each.shared_tokens;
    }
    const std::chrono::duration<double> latency = end - window->captured.steady;
    deps->metrics.window_latency(latency.count());
    const std::chrono::duration<double> to_first_token = end - window->encoded.end;
    deps->metrics.first_token(to_first_token.count());
    if (deps->observer) deps->observer(*window, {start, end});
    --credits;
    self->send<caf::message_priority::high>(alerts, window);
  }
  const std::chrono::duration<double> spent = end - start;
  deps->metrics.prefilled(spent.count(), prompt_tokens, reused);
  deps->metrics.requests(RequestKind::window, deps->device, 0, desk->size());
  beat->took(spent.count(), batch.windows.size());
  deps->metrics.windows("answered", asked.windows.size());
  tell_failures(asked);
  for (const DueWindow& window : batch.windows) {
    if (window.held_credits > 0) self->send(vision, grant_atom_v, window.watch->name, window.held_credits);
  }
  tell_ended(batch);
  waiting.reset();
  schedule();
}

void prefill_state::tell_failures(const AskedWindows& asked) {
  for (const WindowAnswersPtr& window : asked.windows) failure_log.succeeded(window->watch->name);
  std::size_t without_room = 0;
  for (const auto& [watch, reason, out_of_memory] : asked.failures) {
    deps->metrics.windows(out_of_memory ? "out_of_memory" : "failed", 1);
    if (out_of_memory) {
      ++without_room;
    } else if (failure_log.failed(watch->name, reason)) {
      const LogFields about(*watch);
      deps->logger.error("prefill: camera {}: no answer about a window: {}", watch->name, reason);
    }
  }
  const std::size_t tried = asked.windows.size() + asked.failures.size();
  if (asked.too_many.empty()) return limit->fitted(tried);
  limit->too_many(tried);
  deps->logger.log(without_room > 0 ? spdlog::level::err : spdlog::level::warn,
                   "prefill: {} of {} windows lost, batches of at most {} from now on: {}", without_room,
                   tried, limit->now(), asked.too_many);
}

void prefill_state::give_up() {
  const std::size_t windows = desk->size() + (waiting ? waiting->windows.size() : 0);
  if (windows > 0) deps->metrics.windows("device_lost", windows);
  waiting.reset();
}

void prefill_state::tell_ended(const WindowDesk::Batch& batch) {
  for (const std::string& camera : batch.ended) {
    fit->forget(camera);
    failure_log.succeeded(camera);
    self->send<caf::message_priority::high>(alerts, end_atom_v, camera);
  }
}

void prefill_state::tick() {
  beat->idle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
}

void prefill_state::schedule() {
  if (scheduled) return;
  scheduled = true;
  self->send(self, work_atom_v);
}

prefill_actor::behavior_type prefill(prefill_actor::stateful_pointer<prefill_state> self, PrefillDeps deps,
                                     alerts_actor alerts, target_actor target, cache_actor cache) {
  set_handlers(self, deps.logger);
  self->set_exit_handler([self](caf::exit_msg& message) {
    self->state.give_up();
    self->quit(message.reason);
  });
  prefill_state& state = self->state;
  state.alerts = std::move(alerts);
  state.cache = std::move(cache);
  state.desk.emplace(deps.frames_per_patch);
  state.limit.emplace(deps.batch);
  state.beat.emplace(deps.board, deps.device + " prefill");
  state.fit.emplace(deps.prefiller, deps.frames_per_patch);
  state.deps.emplace(deps);
  self->send(self, tick_atom_v);
  self->send(state.alerts, AnswerSource{std::move(target)});
  return {
      [self](join_atom, const WatchPtr& watch) {
        self->state.join(watch, caf::actor_cast<vision_actor>(self->current_sender()));
      },
      [self](const WatchPtr& watch) { self->state.desk->know(watch); },
      [self](const VisualPatchPtr& patch) { self->state.take(patch); },
      [self](end_atom, const std::string& camera) {
        self->state.desk->end(camera);
        self->state.schedule();
      },
      [self](grant_atom, std::uint32_t credits) {
        self->state.credits += credits;
        self->state.schedule();
      },
      [self](room_atom) { self->state.answer(); },
      [self](work_atom) { self->state.work(); },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
