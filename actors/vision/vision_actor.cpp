#include "actors/vision/vision_actor.h"

#include <chrono>
#include <utility>

#include "actors/messages/log_fields.h"
#include "actors/messages/shell.h"

namespace vigil::actors {

void vision_state::join(const WatchPtr& watch, router_actor sender) {
  book.put(watch);
  const PatchQueue::Joined joined = queue->join(*watch);
  if (joined.is_new) {
    self->send(prefill, join_atom_v, watch);
  } else {
    self->send(prefill, watch);
  }
  router = std::move(sender);
  self->send(router, grant_atom_v, watch->name, joined.credits);
}

void vision_state::know(const WatchPtr& watch) {
  if (book.put(watch)) self->send(prefill, watch);
}

void vision_state::take(const FramePatchPtr& patch) {
  if (!book.find(patch->watch) || !queue->push(patch)) {
    deps->metrics.frames_dropped(patch->watch.camera, "queue_full", patch->frames.size());
    self->send(router, ack_of(*patch, PatchOutcome::dropped, "queue_full"));
    return;
  }
  schedule();
}

void vision_state::work() {
  scheduled = false;
  const PatchQueue::Batch batch = queue->pop(limit->now());
  deps->metrics.queue_depth("vision", queue->size(), deps->device);
  if (!batch.patches.empty()) {
    beat->begins(batch.patches.size());
    const auto start = deps->clock.now();
    const Encoded encoded = encode(deps->encoder, deps->clock, batch.patches);
    std::int64_t tokens = 0;
    for (const VisualPatchPtr& patch : encoded.patches) {
      tokens += patch->tokens->count();
      self->send(prefill, patch);
    }
    const std::chrono::duration<double> spent = deps->clock.now() - start;
    deps->metrics.encoded(spent.count(), encoded.patches.size(), tokens);
    beat->took(spent.count(), batch.patches.size());
    tell_failures(encoded);
    for (const FramePatchPtr& patch : batch.patches) book.refer(patch->watch);
    for (const PatchAck& ack : acks_of(batch.patches, encoded)) self->send(router, ack);
  }
  for (const std::string& camera : batch.ended) {
    failure_log.succeeded(camera);
    book.forget(camera);
    self->send(prefill, end_atom_v, camera);
  }
  if (!batch.empty()) schedule();
}

void vision_state::tell_failures(const Encoded& encoded) {
  for (const VisualPatchPtr& patch : encoded.patches) failure_log.succeeded(patch->watch.camera);
  std::size_t without_room = 0;
  for (const Encoded::Failure& failure : encoded.failures) {
    const WatchRef& watch = failure.patch->watch;
    const std::string& camera = watch.camera;
    deps->metrics.frames_dropped(camera, failure.word(), failure.patch->frames.size());
    if (failure.out_of_memory) {
      ++without_room;
    } else if (failure_log.failed(camera, failure.reason)) {
      const LogFields about(*book.find(watch));
      deps->logger.error("vision: camera {}: frames dropped: {}", camera, failure.reason);
    }
    // It did not reach the next stage, which can take another one instead.
    queue->grant(camera, 1);
  }
  const std::size_t tried = encoded.patches.size() + encoded.failures.size();
  if (encoded.too_many.empty()) return limit->fitted(tried);
  limit->too_many(tried);
  deps->logger.log(without_room > 0 ? spdlog::level::err : spdlog::level::warn,
                   "vision: {} of {} patches dropped, passes of at most {} from now on: {}", without_room,
                   tried, limit->now(), encoded.too_many);
}

void vision_state::tick() {
  beat->idle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
}

void vision_state::schedule() {
  if (scheduled) return;
  scheduled = true;
  self->send(self, work_atom_v);
}

vision_actor::behavior_type vision(vision_actor::stateful_pointer<vision_state> self, VisionDeps deps,
                                   prefill_actor prefill) {
  set_handlers(self, deps.logger);
  vision_state& state = self->state;
  state.prefill = std::move(prefill);
  state.queue.emplace(deps.encoder.frames_per_patch());
  state.limit.emplace(deps.batch);
  state.beat.emplace(deps.board, deps.device + " vision");
  state.deps.emplace(deps);
  self->send(self, tick_atom_v);
  return {
      [self](join_atom, const WatchPtr& watch, std::uint32_t) {
        self->state.join(watch, caf::actor_cast<router_actor>(self->current_sender()));
      },
      [self](const WatchPtr& watch) { self->state.know(watch); },
      [self](const FramePatchPtr& patch) { self->state.take(patch); },
      [self](end_atom, const std::string& camera) {
        self->state.queue->end(camera);
        self->state.schedule();
      },
      [self](grant_atom, const std::string& camera, std::uint32_t credits) {
        self->state.queue->grant(camera, credits);
        self->state.schedule();
      },
      [self](work_atom) { self->state.work(); },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
