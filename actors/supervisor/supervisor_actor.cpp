#include "actors/supervisor/supervisor_actor.h"

#include <algorithm>
#include <utility>

#include <caf/send.hpp>

#include "actors/alerts/alerts_actor.h"
#include "actors/camera/camera_actor.h"
#include "actors/camera/recorder_actor.h"
#include "actors/camera/source_options.h"
#include "actors/evidence/evidence_actor.h"
#include "actors/messages/log_fields.h"
#include "actors/messages/shell.h"
#include "actors/pruner/pruner_actor.h"
#include "actors/supervisor/device_actor.h"
#include "actors/supervisor/sources.h"

namespace vigil::actors {
namespace {

constexpr auto kWatchTick = std::chrono::milliseconds(250);
/// Until a recorder that failed, which reading does not make it, is started again.
constexpr std::chrono::seconds kRecorderRest{10};
/// Lines about cameras in the log; beyond, a line tells how many there were.
constexpr std::size_t kMostLines = 100;
constexpr std::chrono::minutes kLineSpan{1};

}  // namespace

void supervisor_state::start_pipeline() {
  const Threads own = deps->threads;
  AlertDesk::Options alert_options{
      .model = {deps->model_id}, .retention = deps->retention, .run = deps->seed, .process = deps->name};
  for (const CameraPtr& camera : deps->cameras)
    for (const config::RuleSettings& rule : camera->rules)
      alert_options.topics.push_back(alert_topics(*camera, rule));
  if (deps->evidence) {
    alert_options.evidence = {deps->evidence->pre_roll, deps->evidence->post_roll};
    evidence = spawn(self, own, actors::evidence,
                     EvidenceDeps{deps->evidence->store, deps->clock, deps->metrics, deps->board,
                                  deps->logger, deps->evidence->memory});
    stages[evidence.address()] = "evidence";
    recordings.emplace(Recordings::Options{deps->evidence->pre_roll, deps->evidence->post_roll,
                                           deps->evidence->memory, deps->seed});
  }
  alerts = spawn(self, own, actors::alerts,
                 AlertsDeps{alert_options, deps->outbox, deps->publisher, deps->clock, deps->metrics,
                            deps->board, deps->logger},
                 evidence, supervisor_actor(self));
  // It only passes on what others compute.
  pruner = spawn(self, Threads::scheduled, actors::pruner, PrunerDeps{deps->metrics, deps->logger});
  deps->board.beat("alerts", kAlertsPatience);
  stages.insert({{alerts.address(), "alerts"}, {pruner.address(), "pruner"}});
  std::vector<std::string> names;
  for (DeviceSlot& slot : deps->devices) {
    names.push_back(slot.name);
    devices.push_back(spawn(self, own, actors::device,
                            DeviceDeps{std::move(slot), deps->clock, deps->metrics, deps->board, deps->logger,
                                       own, deps->observer},
                            alerts, supervisor_actor(self)));
    stages[devices.back().address()] = names.back();
  }
  placement.emplace(names);
  lines.emplace(kMostLines, kLineSpan);
  dialer.emplace(deps->dial);
  if (deps->reach) {
    reach = deps->reach([told = supervisor_actor(self)](const media::Reach::Answer& answer) {
      caf::anon_send(told, ReachReport{answer});
    });
  }
  for (const CameraPtr& camera : deps->cameras) want_camera(camera->name);
  dial();
  deps->board.phase(RunPhase::running);
  self->send(self, tick_atom_v);
}

std::shared_ptr<media::PacketHistory> supervisor_state::record(const CameraPtr& camera) {
  if (!recordings) return nullptr;
  const Recordings::Start start = recordings->start(*camera, fleet->pulse(camera->name));
  if (start.anew) {
    if (start.outdated) stop_recorder(*start.outdated);
    const SourceId id{camera->name, config::Role::record};
    drop_source(id);
    if (camera->records_apart()) want_source(id, *camera);
  }
  self->send(evidence, Recording{camera->name, start.history});
  return camera->records_apart() ? nullptr : start.history;
}

void supervisor_state::start_recorder(const std::string& camera) {
  const recorder_actor handle =
      spawn(self, deps->threads, actors::recorder, recordings->recorder_options(fleet->settings(camera)),
            RecorderDeps{deps->open_packets, deps->clock, deps->logger, recordings->pulse(camera)},
            supervisor_actor(self));
  recorders[handle.id()] = handle;
  recordings->begun(camera, handle.id());
}

void supervisor_state::want_camera(const std::string& camera) {
  const CameraPtr settings = fleet->settings(camera);
  deps->metrics.camera_added(*settings);
  // Until its turn has come, which is told like any other state.
  deps->metrics.camera_state(camera, CameraState::connecting);
  deps->board.camera(*settings, CameraState::connecting, "waits for its turn");
  want_source({camera}, *settings);
}

void supervisor_state::want_source(const SourceId& id, const config::CameraSettings& camera) {
  const Dialer::Way way = way_of(address_of(camera, id.role).value, reach != nullptr);
  dialer->add(id, way, descriptors_of(camera, id.role), deps->clock.now());
}

void supervisor_state::drop_source(const SourceId& id) {
  const auto question = dialer->remove(id);
  if (question) reach->forget(*question);
}

void supervisor_state::drop_sources(const std::string& camera) {
  drop_source({camera, config::Role::detect});
  drop_source({camera, config::Role::record});
}

void supervisor_state::dial() {
  if (fleet->stopping() || finishing) return;
  // What is started may want a source of its own.
  for (auto turn = dialer->next(deps->clock.now()); !turn.empty(); turn = dialer->next(deps->clock.now()))
    take_turn(turn);
  tell_exhaustion();
  await_turn();
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
  for (const SourceId& id : turn.without_descriptor) {
    const std::string reason =
        "all " + std::to_string(deps->dial.descriptors) + " file descriptors for cameras are in use";
    if (id.role == config::Role::record) {
      tell_recording(id.camera, false, reason);
    } else if (const auto change = fleet->report(id.camera, CameraState::down, reason)) {
      tell(*change);
    }
  }
}

void supervisor_state::await_turn() {
  const auto wake = dialer->wake();
  if (!wake) return;
  if (const auto timer = turn_timer.await(*wake, deps->clock.now()))
    self->delayed_send(self, timer->delay, dial_atom_v, timer->number);
}

// Of all cameras, and seldom: no bound on lines about each may hide it.
void supervisor_state::tell_exhaustion() {
  if (std::exchange(exhaustion_told, dialer->exhausted()) == dialer->exhausted()) return;
  if (exhaustion_told) {
    deps->logger.error(
        "no file descriptor is left: cameras that are down wait until there is one (ulimit -n)");
  } else {
    deps->logger.warn("there are file descriptors again: cameras that waited for them are opened");
  }
}

void supervisor_state::stop_recorder(Recordings::RecorderId recorder) {
  if (const auto handle = recorders.find(recorder); handle != recorders.end())
    self->send(handle->second, stop_atom_v);
}

void supervisor_state::start_camera(const std::string& camera) {
  CameraOptions options;
  options.camera = fleet->settings(camera);
  deps->metrics.camera_added(*options.camera);
  options.shape = deps->shape;
  options.once = deps->once;
  options.generation = fleet->started(camera);
  options.backoff = fleet->backoff(camera);
  options.retrying = fleet->retrying(camera);
  options.history = record(options.camera);
  const camera_actor handle =
      spawn(self, deps->threads, actors::camera, std::move(options),
            CameraDeps{deps->open, deps->clock, deps->metrics, deps->logger, fleet->pulse(camera)}, pruner,
            supervisor_actor(self));
  cameras[handle.address()] = camera;
  handles[camera] = handle;
  route(camera);
}

void supervisor_state::tell(const Fleet::Change& change) {
  deps->metrics.camera_state(change.camera->name, change.state);
  deps->board.camera(*change.camera, change.state, change.reason);
  if (change.state != CameraState::up) deps->metrics.camera_fps(change.camera->name, 0);
  const LogFields about(*change.camera);
  const bool expected = fleet->stopping() || deps->once || change.leaving;
  const std::string line = "camera " + change.camera->name + ": " + std::string(name_of(change.state));
  if ((change.state == CameraState::down && !expected) || change.state == CameraState::stalled) {
    log(spdlog::level::warn, line + ": " + change.reason);
  } else {
    // Who was told that it was lost is told that it is back.
    log(change.recovered ? spdlog::level::warn : spdlog::level::info, line);
  }
  self->send(alerts, StatusChange{change.camera, change.state, change.reason});
}

void supervisor_state::report(const CameraReport& report) {
  if (const auto change = fleet->report(report.camera, report.state, report.reason)) tell(*change);
  if (report.failed) fleet->gave_up(report.camera, report.reason);
  if (report.state != CameraState::up) return;
  dialer->delivers({report.camera});
  dial();
}

void supervisor_state::report(const RecorderReport& report, const caf::actor_addr& sender) {
  if (!is_current_recorder(sender)) return;
  tell_recording(report.camera, report.recording, report.reason);
  if (!report.recording) return;
  dialer->delivers({report.camera, config::Role::record});
  dial();
}

void supervisor_state::tell_recording(const std::string& camera, bool recording, const std::string& reason) {
  if (!recordings->is_news(camera, recording)) return;
  deps->metrics.camera_recording(camera, recording);
  const LogFields about(*fleet->settings(camera));
  if (recording) {
    log(spdlog::level::info, "camera " + camera + ": recorded");
  } else {
    log(spdlog::level::warn, "camera " + camera + ": not recorded: " + reason);
  }
}

void supervisor_state::report(const ReachReport& report) {
  const auto& [ticket, failure, no_descriptor] = report.answer;
  const auto id = dialer->answered(ticket, failure.empty());
  if (!id) return;
  if (no_descriptor) {
    dialer->no_descriptor(*id, deps->clock.now());
  } else if (!failure.empty()) {
    unreachable(*id, failure);
  }
  dial();
}

void supervisor_state::unreachable(const SourceId& id, const std::string& reason) {
  const bool is_record = id.role == config::Role::record;
  Backoff& backoff = is_record ? recordings->backoff(id.camera) : *fleet->backoff(id.camera);
  dialer->rest(id, next_attempt(backoff, media::Error::Kind::source, deps->clock.now()));
  if (is_record) return tell_recording(id.camera, false, reason);
  deps->metrics.camera_reconnected(id.camera);
  if (const auto change = fleet->report(id.camera, CameraState::down, reason)) tell(*change);
}

// What comes of it is decided when its actor has ended, since there must not be two.
void supervisor_state::rest(const SourceRest& rest, const caf::actor_addr& sender) {
  const bool current =
      rest.role == config::Role::record ? is_current_recorder(sender) : cameras.contains(sender);
  if (current) resting[{rest.camera, rest.role}] = rest;
}

void supervisor_state::lost(const caf::down_msg& message) {
  const bool failed = message.reason != caf::exit_reason::normal;
  if (const auto entry = cameras.find(message.source); entry != cameras.end()) {
    const std::string camera = entry->second;
    cameras.erase(entry);
    handles.erase(camera);
    camera_lost(camera, failed);
    settle();
    finish_if_ended();
    answer_waiting();
    return dial();
  }
  if (recorders.erase(message.source.id()) > 0) {
    recorder_lost(message);
    return dial();
  }
  const auto stage = stages.find(message.source);
  if (stage == stages.end()) return;
  const std::string what = stage->second;
  stages.erase(stage);
  deps->board.silent(what);
  if (!finishing) {
    fleet->fail("the " + what + " actor failed: " + reason_of(message.reason, self->system()));
    stop();
    finish_pipeline();
  }
  answer_waiting();
}

void supervisor_state::camera_lost(const std::string& camera, bool failed) {
  const SourceId id{camera};
  const auto now = deps->clock.now();
  const auto rest = resting.extract(id);
  if (rest && !failed) {
    fleet->rests(camera, rest.mapped().until);
  } else if (const auto change = fleet->lost(camera, failed, now)) {
    tell(*change);
  }
  const auto start_at = fleet->start_at(camera);
  if (!start_at) {
    drop_source(id);
    // It was asked to end, and did not do so itself.
    if (rest || failed) end_orphans();
  } else if (rest && rest.mapped().no_descriptor) {
    dialer->no_descriptor(id, now);
  } else {
    dialer->rest(id, *start_at);
  }
}

void supervisor_state::recorder_lost(const caf::down_msg& message) {
  const auto camera = recordings->ended(message.source.id());
  if (!camera) return;
  const SourceId id{*camera, config::Role::record};
  const auto now = deps->clock.now();
  const auto rest = resting.extract(id);
  if (message.reason != caf::exit_reason::normal) {
    dialer->rest(id, now + kRecorderRest);
  } else if (rest && rest.mapped().no_descriptor) {
    dialer->no_descriptor(id, now);
  } else if (rest) {
    dialer->rest(id, rest.mapped().until);
  }
}

void supervisor_state::log(spdlog::level::level_enum level, const std::string& line) {
  if (deps->logger.should_log(level) && lines->take(deps->clock.now())) deps->logger.log(level, line);
}

void supervisor_state::tick() {
  deps->board.beat();
  const auto now = deps->clock.now();
  for (const Fleet::Change& change : fleet->watch(now)) tell(change);
  if (const std::size_t missed = lines->take_missed(now))
    deps->logger.warn(
        "cameras: {} more lines in the last minute are left out; /status tells the state of each", missed);
  self->delayed_send(self, kWatchTick, tick_atom_v);
}

void supervisor_state::reload(const CameraList& list) {
  // Every file has been played to its end: nothing would take the frames of a camera that starts now.
  if (finishing) return;
  const bool watched = !fleet->all_ended();
  const Fleet::Plan plan = fleet->reload(list.cameras);
  for (const std::string& camera : plan.start) want_camera(camera);
  for (const CameraPtr& camera : plan.alter) {
    deps->metrics.camera_added(*camera);
    self->send(handles.at(camera->name), camera);
    if (recordings) recordings->alter(*camera);
  }
  for (const std::string& camera : plan.stop) stop_camera(camera);
  for (const CameraPtr& camera : plan.end) {
    drop_sources(camera->name);
    self->send(pruner, end_atom_v, camera);
  }
  settle();
  if (watched) finish_if_ended();
  dial();
}

void supervisor_state::settle() {
  const Fleet::Departed departed = fleet->departed();
  for (const std::string& camera : departed.gone) {
    drop_sources(camera);
    deps->metrics.camera_removed(camera);
    deps->board.forget(camera);
    if (const auto outdated = recordings ? recordings->remove(camera) : std::nullopt)
      stop_recorder(*outdated);
    placement->remove(camera);
    self->send(pruner, forget_atom_v, camera);
  }
  for (const std::string& camera : departed.start) {
    drop_sources(camera);
    want_camera(camera);
  }
}

void supervisor_state::stop_camera(const std::string& camera) {
  drop_sources(camera);
  fleet->pulse(camera)->cancel();
  self->send(handles.at(camera), stop_atom_v);
}

void supervisor_state::stop() {
  if (fleet->stopping()) return;
  fleet->stop();
  deps->board.phase(RunPhase::draining);
  for (const auto& [camera, handle] : handles) stop_camera(camera);
  if (recordings)
    for (const Recordings::RecorderId recorder : recordings->stop()) stop_recorder(recorder);
  // Nothing is opened any more.
  reach.reset();
  dialer.emplace(deps->dial);
  end_orphans();
  self->delayed_send(self, deps->grace / 2, force_atom_v);
  self->delayed_send(self, deps->grace, giveup_atom_v);
  // Of cameras that were never begun, nothing is under way.
  finish_if_ended();
}

void supervisor_state::end_orphans() {
  for (const CameraPtr& camera : fleet->orphans()) self->send(pruner, end_atom_v, camera);
}

void supervisor_state::finish_if_ended() {
  if (!fleet->all_ended()) return;
  complete = true;
  finish_pipeline();
}

void supervisor_state::finish_pipeline() {
  if (finishing) return;
  finishing = true;
  // Plain messages, not exits, which would overtake what was sent before.
  self->send(pruner, stop_atom_v);
  for (const device_actor& device : devices) self->send(device, stop_atom_v);
  self->send(alerts, stop_atom_v);
  if (evidence) self->send(evidence, stop_atom_v);
}

void supervisor_state::answer_waiting() {
  if (!outcome && (!finishing || !stages.empty() || !cameras.empty())) return;
  if (!outcome) outcome = DrainReport{complete, fleet->failures()};
  if (waiting.empty()) return;
  for (auto& promise : waiting) promise.deliver(*outcome);
  waiting.clear();
  self->quit();
}

supervisor_actor::behavior_type supervisor(supervisor_actor::stateful_pointer<supervisor_state> self,
                                           PipelineDeps deps) {
  set_handlers(self, deps.logger);
  supervisor_state& state = self->state;
  state.fleet.emplace(deps.cameras, deps.seed);
  state.deps.emplace(std::move(deps));
  self->set_down_handler([self](caf::down_msg& message) { self->state.lost(message); });
  state.start_pipeline();
  return {
      [self](const CameraReport& report) { self->state.report(report); },
      [self](const SourceRest& rest) {
        self->state.rest(rest, caf::actor_cast<caf::actor_addr>(self->current_sender()));
      },
      [self](const RecorderReport& report) {
        self->state.report(report, caf::actor_cast<caf::actor_addr>(self->current_sender()));
      },
      [self](const ReachReport& report) { self->state.report(report); },
      [self](dial_atom, std::uint64_t timer) {
        if (self->state.turn_timer.rings(timer)) self->state.dial();
      },
      [self](const DeviceReport& report) { self->state.report(report); },
      [self](end_atom, const std::string& camera) {
        self->state.fleet->ended(camera);
        self->state.settle();
        self->state.finish_if_ended();
        self->state.dial();
      },
      [self](tick_atom) { self->state.tick(); },
      [self](reload_atom, const CameraList& list) { self->state.reload(list); },
      [self](stop_atom) { self->state.stop(); },
      [self](force_atom) {
        for (const CameraPtr& camera : self->state.fleet->remaining()) {
          self->send(self->state.pruner, end_atom_v, camera);
        }
      },
      [self](giveup_atom) {
        // What alerts there are is published; what is still computed is lost with the process.
        self->state.finish_pipeline();
        if (!self->state.outcome) self->state.outcome = DrainReport{false, self->state.fleet->failures()};
        self->state.answer_waiting();
      },
      [self](wait_atom) -> caf::result<DrainReport> {
        auto promise = self->make_response_promise<DrainReport>();
        self->state.waiting.push_back(promise);
        self->state.answer_waiting();
        return promise;
      },
  };
}

}  // namespace vigil::actors
