#include "actors/supervisor/supervisor_actor.h"

#include <functional>
#include <utility>

#include "actors/alerts/alerts_actor.h"
#include "actors/camera/camera_actor.h"
#include "actors/camera/recorder_actor.h"
#include "actors/evidence/evidence_actor.h"
#include "actors/messages/shell.h"
#include "actors/pruner/pruner_actor.h"
#include "actors/supervisor/device_actor.h"

namespace vigil::actors {
namespace {

constexpr auto kWatchTick = std::chrono::milliseconds(250);
/// Evidence that is asked for later than this finds the beginning of its clip gone.
constexpr std::chrono::seconds kLatestAnswer{10};
/// Until a recorder that failed, which reading does not make it, is started again.
constexpr std::chrono::seconds kRecorderRest{10};

}  // namespace

void supervisor_state::start_pipeline() {
  const Threads own = deps->threads;
  AlertDesk::Options alert_options{
      .model = {deps->model_id}, .retention = deps->retention, .run = deps->seed};
  if (deps->evidence) {
    alert_options.evidence = {deps->evidence->pre_roll, deps->evidence->post_roll};
    evidence = spawn(self, own, actors::evidence,
                     EvidenceDeps{deps->evidence->store, deps->clock, deps->metrics, deps->logger,
                                  deps->evidence->memory});
    stages[evidence.address()] = "evidence";
  }
  alerts = spawn(self, own, actors::alerts,
                 AlertsDeps{alert_options, deps->outbox, deps->publisher, deps->clock, deps->metrics,
                            deps->board, deps->logger},
                 evidence, supervisor_actor(self));
  // It only passes on what others compute.
  pruner = spawn(self, Threads::scheduled, actors::pruner, PrunerDeps{deps->metrics, deps->logger});
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
  for (const CameraPtr& camera : deps->cameras) start_camera(camera->name);
  deps->board.phase(RunPhase::running);
  self->send(self, tick_atom_v);
}

std::shared_ptr<media::PacketHistory> supervisor_state::record(const CameraPtr& camera) {
  if (!deps->evidence) return nullptr;
  Recorded& entry = recorded[camera->name];
  const std::shared_ptr<Pulse>& pulse = fleet->pulse(camera->name);
  if (entry.pulse != pulse) {
    stop_recorder(entry);
    // As long as the clip, and as it takes until an answer asks for it.
    const config::WindowSettings& window = camera->stream.window;
    const config::Duration kept = deps->evidence->pre_roll + window.length + deps->evidence->post_roll +
                                  2 * window.stride + kLatestAnswer;
    entry = {pulse, std::make_shared<media::PacketHistory>(
                        media::PacketHistory::Limits{config::seconds(kept), deps->evidence->memory})};
    if (camera->records_apart()) start_recorder(camera);
  }
  self->send(evidence, Recording{camera->name, entry.history});
  return camera->records_apart() ? nullptr : entry.history;
}

void supervisor_state::start_recorder(const CameraPtr& camera) {
  Recorded& entry = recorded[camera->name];
  entry.restart_at.reset();
  const std::uint64_t seed = deps->seed + std::hash<std::string>{}(camera->name);
  entry.recorder =
      spawn(self, deps->threads, actors::recorder, RecorderOptions{camera, entry.history, seed},
            RecorderDeps{deps->open_packets, deps->clock, deps->metrics, deps->logger, entry.pulse});
}

void supervisor_state::stop_recorder(const Recorded& entry) {
  if (!entry.recorder) return;
  entry.pulse->cancel();
  self->send(entry.recorder, stop_atom_v);
}

void supervisor_state::start_camera(const std::string& camera) {
  CameraOptions options;
  options.camera = fleet->settings(camera);
  options.shape = deps->shape;
  options.once = deps->once;
  options.generation = fleet->started(camera);
  // Cameras behind one switch must not draw the same jitter.
  options.seed = deps->seed + std::hash<std::string>{}(camera) + options.generation;
  options.history = record(options.camera);
  const camera_actor handle =
      spawn(self, deps->threads, actors::camera, std::move(options),
            CameraDeps{deps->open, deps->clock, deps->metrics, deps->logger, fleet->pulse(camera)}, pruner,
            supervisor_actor(self));
  cameras[handle.address()] = camera;
  handles[camera] = handle;
  route(camera);
}

void supervisor_state::route(const std::string& camera) {
  const auto device = placement->place(camera);
  if (!device) return;
  const auto vision = visions.find(*device);
  if (vision != visions.end()) {
    self->send(pruner, Route{camera, vision->second});
    if (const auto change = fleet->watched(camera, "watched on " + *device)) tell(*change);
  } else if (placement->state(*device) != DeviceState::up) {
    unwatched(camera, *device + " is being started again");
  }
}

void supervisor_state::unwatched(const std::string& camera, const std::string& reason) {
  self->send(pruner, Route{camera, {}});
  if (const auto change = fleet->unwatched(camera, reason)) tell(*change);
}

void supervisor_state::report(const DeviceReport& report) {
  deps->metrics.device_state(report.device, report.state);
  deps->board.device(report.device, report.state, report.reason);
  switch (report.state) {
    case DeviceState::up:
      return device_up(report);
    case DeviceState::restarting:
      return device_restarting(report);
    case DeviceState::lost:
      return device_lost(report);
  }
}

void supervisor_state::device_up(const DeviceReport& report) {
  placement->enter(report.device, DeviceState::up);
  visions[report.device] = report.vision;
  for (const std::string& camera : placement->cameras(report.device)) route(camera);
  // What had ended on the way through the engine before this one would otherwise never come out.
  end_orphans();
}

void supervisor_state::device_restarting(const DeviceReport& report) {
  placement->enter(report.device, DeviceState::restarting);
  visions.erase(report.device);
  for (const std::string& camera : placement->cameras(report.device))
    unwatched(camera, report.device + " is being started again: " + report.reason);
}

void supervisor_state::device_lost(const DeviceReport& report) {
  visions.erase(report.device);
  const std::string lost = report.device + " is lost: " + report.reason;
  for (const auto& [camera, device] : placement->lose(report.device)) {
    unwatched(camera, lost);
    if (device) route(camera);
  }
  if (placement->any_left()) return end_orphans();
  // Nothing is watched any more. A new process is what brings a device back, and whoever runs this one starts
  // it again when it fails.
  fleet->fail("no device is left: " + lost);
  stop();
  finish_pipeline();
}

void supervisor_state::tell(const Fleet::Change& change) {
  deps->metrics.camera_state(change.camera->name, change.state);
  deps->board.camera(*change.camera, change.state, change.reason);
  if (change.state != CameraState::up) deps->metrics.camera_fps(change.camera->name, 0);
  const bool expected = fleet->stopping() || deps->once || change.leaving;
  if ((change.state == CameraState::down && !expected) || change.state == CameraState::stalled) {
    deps->logger.warn("camera {}: {}: {}", change.camera->name, name_of(change.state), change.reason);
  } else {
    deps->logger.info("camera {}: {}", change.camera->name, name_of(change.state));
  }
  self->send(alerts, StatusChange{change.camera, change.state, change.reason});
}

void supervisor_state::report(const CameraReport& report) {
  if (const auto change = fleet->report(report.camera, report.state, report.reason)) tell(*change);
  if (report.failed) fleet->gave_up(report.camera, report.reason);
}

void supervisor_state::lost(const caf::down_msg& message) {
  const bool failed = message.reason != caf::exit_reason::normal;
  if (const auto entry = cameras.find(message.source); entry != cameras.end()) {
    const std::string camera = entry->second;
    cameras.erase(entry);
    handles.erase(camera);
    if (const auto change = fleet->lost(camera, failed, deps->clock.now())) tell(*change);
    if (failed) end_orphans();
    settle();
    finish_if_ended();
    answer_waiting();
    return;
  }
  for (auto& [camera, entry] : recorded) {
    if (!entry.recorder || entry.recorder.address() != message.source) continue;
    entry.recorder = recorder_actor();
    if (failed) entry.restart_at = deps->clock.now() + kRecorderRest;
    return;
  }
  const auto stage = stages.find(message.source);
  if (stage == stages.end()) return;
  const std::string what = stage->second;
  stages.erase(stage);
  if (!finishing) {
    fleet->fail("the " + what + " actor failed: " + reason_of(message.reason, self->system()));
    stop();
    finish_pipeline();
  }
  answer_waiting();
}

void supervisor_state::tick() {
  deps->board.beat();
  const auto now = deps->clock.now();
  for (const Fleet::Change& change : fleet->watch(now)) tell(change);
  for (const std::string& camera : fleet->due(now)) start_camera(camera);
  for (const auto& [camera, entry] : recorded)
    if (entry.restart_at && now >= *entry.restart_at && !fleet->stopping())
      start_recorder(fleet->settings(camera));
  self->delayed_send(self, kWatchTick, tick_atom_v);
}

void supervisor_state::reload(const CameraList& list) {
  // Every file has been played to its end: nothing would take the frames of a camera that starts now.
  if (finishing) return;
  const Fleet::Plan plan = fleet->reload(list.cameras);
  for (const std::string& camera : plan.start) start_camera(camera);
  for (const CameraPtr& camera : plan.alter) self->send(handles.at(camera->name), camera);
  for (const std::string& camera : plan.stop) stop_camera(camera);
  for (const CameraPtr& camera : plan.end) self->send(pruner, end_atom_v, camera);
  settle();
}

void supervisor_state::settle() {
  const Fleet::Departed departed = fleet->departed();
  for (const std::string& camera : departed.gone) {
    deps->metrics.camera_removed(camera);
    deps->board.forget(camera);
    if (const auto entry = recorded.find(camera); entry != recorded.end()) {
      stop_recorder(entry->second);
      recorded.erase(entry);
    }
    placement->remove(camera);
    self->send(pruner, forget_atom_v, camera);
  }
  for (const std::string& camera : departed.start) start_camera(camera);
}

void supervisor_state::stop_camera(const std::string& camera) {
  fleet->pulse(camera)->cancel();
  self->send(handles.at(camera), stop_atom_v);
}

void supervisor_state::stop() {
  if (fleet->stopping()) return;
  fleet->stop();
  deps->board.phase(RunPhase::draining);
  for (const auto& [camera, handle] : handles) stop_camera(camera);
  for (const auto& [camera, entry] : recorded) stop_recorder(entry);
  end_orphans();
  self->delayed_send(self, deps->grace / 2, force_atom_v);
  self->delayed_send(self, deps->grace, giveup_atom_v);
}

void supervisor_state::end_orphans() {
  for (const CameraPtr& camera : fleet->orphans()) self->send(pruner, end_atom_v, camera);
}

void supervisor_state::finish_if_ended() {
  if (!fleet->remaining().empty()) return;
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
      [self](const DeviceReport& report) { self->state.report(report); },
      [self](end_atom, const std::string& camera) {
        self->state.fleet->ended(camera);
        self->state.settle();
        self->state.finish_if_ended();
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
