// The part of the supervisor's shell that starts cameras and recorders, each in its turn, and hears how they
// fare.
#include <utility>

#include "actors/camera/camera_actor.h"
#include "actors/camera/recorder_actor.h"
#include "actors/supervisor/sources.h"
#include "actors/supervisor/supervisor_actor.h"

namespace vigil::actors {

void supervisor_state::want_camera(const std::string& camera) {
  const WatchPtr watch = fleet->watch_settings(camera);
  deps->metrics.camera_added(*watch);
  // Until its turn has come, which is told like any other state.
  deps->metrics.camera_state(camera, CameraState::connecting);
  deps->board.camera(*watch, CameraState::connecting, "waits for its turn");
  want_source({camera}, *fleet->settings(camera));
}

void supervisor_state::want_source(const SourceId& id, const config::CameraSettings& camera) {
  const Dialer::Way way = way_of(address_of(camera, id.role).value, reach != nullptr);
  dialer->add(id, way, descriptors_of(camera, id.role), deps->clock.now());
}

void supervisor_state::drop_sources(const std::string& camera) {
  forget(dialer->remove({camera, config::Role::detect}));
  forget(dialer->remove({camera, config::Role::record}));
}

void supervisor_state::forget(const std::optional<std::uint64_t>& question) {
  if (question) reach->forget(*question);
}

void supervisor_state::dial() {
  if (drain.stopping() || drain.finishing()) return;
  // What is started may want a source of its own.
  for (auto turn = dialer->next(deps->clock.now()); !turn.empty(); turn = dialer->next(deps->clock.now()))
    take_turn(turn);
  if (const auto exhausted = dialer->exhaustion_news()) log->exhausted(*exhausted);
  const auto wake = dialer->wake();
  if (!wake) return;
  if (const auto timer = turn_timer.await(*wake, deps->clock.now()))
    self->delayed_send(self, timer->delay, dial_atom_v, timer->number);
}

void supervisor_state::take_turn(const Dialer::Turn& turn) {
  for (const SourceId& id : turn.open) {
    if (id.role == config::Role::record) {
      start_recorder(id.camera);
    } else {
      start_camera(id.camera);
    }
  }
  for (const auto& [ticket, id] : turn.ask) {
    const config::MaskedText address = address_of(*fleet->settings(id.camera), id.role);
    reach->ask(ticket, address.value, address.shown);
  }
  const std::string reason = dialer->without_descriptor_reason();
  for (const SourceId& id : turn.without_descriptor) {
    if (id.role == config::Role::record) {
      tell(recordings->said({id.camera, false, reason}));
    } else {
      tell(fleet->report(id.camera, CameraState::down, reason));
    }
  }
}

void supervisor_state::start_camera(const std::string& camera) {
  CameraOptions options;
  options.camera = fleet->settings(camera);
  options.watch = fleet->watch_settings(camera);
  deps->metrics.camera_added(*options.watch);
  options.shape = deps->shape;
  options.once = deps->once;
  options.generation = fleet->started(camera);
  options.backoff = fleet->backoff(camera);
  options.retrying = fleet->retrying(camera);
  options.history = record(options.camera);
  options.remembers = deps->remembers;
  const camera_actor handle =
      spawn(self, deps->threads, actors::camera, std::move(options),
            CameraDeps{deps->open, deps->clock, deps->metrics, deps->logger, fleet->pulse(camera)}, router,
            supervisor_actor(self));
  members[handle.address()] = {Member::Kind::camera, camera};
  drain.camera_runs(camera);
  cameras[camera] = handle;
  if (const auto decision = routes->start(camera)) route(*decision);
  // It is read all the same; others are opened by the first credit.
  if (routes->is_withheld(camera)) self->send(handle, grant_atom_v, std::uint32_t{0});
}

std::shared_ptr<media::PacketHistory> supervisor_state::record(const CameraPtr& camera) {
  if (!recordings) return nullptr;
  const RecorderFleet::Start start = recordings->start(*camera, fleet->pulse(camera->name));
  if (start.anew) {
    stop_recorder(start.outdated);
    const SourceId id{camera->name, config::Role::record};
    forget(dialer->remove(id));
    if (!start.own) want_source(id, *camera);
  }
  self->send(evidence, Recording{camera->name, start.history});
  return start.own;
}

void supervisor_state::start_recorder(const std::string& camera) {
  const recorder_actor handle =
      spawn(self, deps->threads, actors::recorder, recordings->recorder_options(fleet->settings(camera)),
            RecorderDeps{deps->open_packets, deps->clock, deps->logger, recordings->pulse(camera)},
            supervisor_actor(self));
  members[handle.address()] = {Member::Kind::recorder, camera};
  recorders[handle.id()] = handle;
  recordings->begun(camera, handle.id());
}

void supervisor_state::stop_recorder(const std::optional<RecorderFleet::RecorderId>& recorder) {
  if (!recorder) return;
  if (const auto handle = recorders.find(*recorder); handle != recorders.end())
    self->send(handle->second, stop_atom_v);
}

void supervisor_state::tell(const std::optional<RecorderReport>& news) {
  if (!news) return;
  deps->metrics.camera_recording(news->camera, news->recording);
  log->recorded(*news, *fleet->watch_settings(news->camera));
}

void supervisor_state::report(const RecorderReport& report, const caf::actor_addr& sender) {
  if (!recordings || !sender || !recordings->is_current(sender.id())) return;
  tell(recordings->said(report));
  if (!report.recording) return;
  dialer->delivers({report.camera, config::Role::record});
  dial();
}

void supervisor_state::report(const ReachReport& report) {
  const auto& [ticket, failure, no_descriptor] = report.answer;
  const auto id = dialer->answered(ticket, failure.empty());
  if (!id) return;
  const auto now = deps->clock.now();
  if (no_descriptor) {
    dialer->no_descriptor(*id, now);
  } else if (!failure.empty() && id->role == config::Role::record) {
    const auto [again, news] = recordings->unreachable(id->camera, failure, now);
    dialer->rest(*id, again);
    tell(news);
  } else if (!failure.empty()) {
    const auto [again, change] = fleet->unreachable(id->camera, failure, now);
    dialer->rest(*id, again);
    deps->metrics.camera_reconnected(id->camera);
    tell(change);
  }
  dial();
}

void supervisor_state::rest(const SourceRest& rest, const caf::actor_addr& sender) {
  if (!members.contains(sender)) return;
  if (rest.role == config::Role::record) {
    recordings->rests(sender.id(), rest);
  } else {
    fleet->rests(rest);
  }
}

void supervisor_state::camera_lost(const std::string& camera, bool failed) {
  cameras.erase(camera);
  drain.camera_ended(camera);
  const auto now = deps->clock.now();
  const Fleet::Loss loss = fleet->lost(camera, failed, now);
  tell(loss.change);
  forget(dialer->ended({camera}, loss.source, now));
  if (loss.orphaned) end({fleet->watch_settings(camera)});
}

void supervisor_state::recorder_lost(RecorderFleet::RecorderId recorder, bool failed) {
  recorders.erase(recorder);
  const auto now = deps->clock.now();
  if (const auto loss = recordings->lost(recorder, failed, now))
    forget(dialer->ended({loss->camera, config::Role::record}, loss->source, now));
}

}  // namespace vigil::actors
