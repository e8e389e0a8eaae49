#include "actors/supervisor/supervisor_actor.h"

#include <exception>
#include <utility>

#include <caf/send.hpp>

#include "actors/alerts/alerts_actor.h"
#include "actors/device/device_actor.h"
#include "actors/evidence/evidence_actor.h"
#include "actors/messages/shell.h"
#include "actors/router/router_actor.h"

namespace vigil::actors {
namespace {

constexpr auto kWatchTick = std::chrono::milliseconds(250);
/// How long a run that is given up waits for alerts alone.
constexpr auto kLastWords = std::chrono::seconds(5);

AlertDesk::Options alert_options(const PipelineDeps& deps) {
  AlertDesk::Options options{
      .model = {deps.model_id}, .retention = deps.retention, .run = deps.seed, .process = deps.name};
  for (const CameraPtr& camera : deps.cameras)
    for (const config::RuleSettings& rule : camera->rules)
      options.topics.push_back(alert_topics(watch_of(*camera), rule));
  if (deps.evidence) options.evidence = {deps.evidence->pre_roll, deps.evidence->post_roll};
  return options;
}

}  // namespace

void supervisor_state::start_pipeline() {
  const Threads own = deps->threads;
  if (const auto& parts = deps->evidence) {
    evidence = spawn(
        self, own, actors::evidence,
        EvidenceDeps{parts->store, deps->clock, deps->metrics, deps->board, deps->logger, parts->memory});
    add_stage(evidence.address(), "evidence");
    recordings.emplace(RecorderFleet::Options{parts->pre_roll, parts->post_roll, parts->memory, deps->seed});
  }
  alerts = spawn(self, own, actors::alerts,
                 AlertsDeps{alert_options(*deps), deps->outbox, deps->publisher, deps->clock, deps->metrics,
                            deps->board, deps->logger, deps->claims},
                 evidence, supervisor_actor(self));
  deps->board.beat("alerts", kAlertsPatience);
  add_stage(alerts.address(), std::string(Drain::kAlerts));
  // It only passes on what others compute.
  router = spawn(self, Threads::scheduled, actors::router, RouterDeps{deps->metrics, deps->logger});
  add_stage(router.address(), "router");
  std::vector<std::string> names;
  for (DeviceSlot& slot : deps->devices) {
    names.push_back(slot.name);
    devices.push_back(spawn(self, own, actors::device,
                            DeviceDeps{.slot = std::move(slot),
                                       .clock = deps->clock,
                                       .metrics = deps->metrics,
                                       .board = deps->board,
                                       .logger = deps->logger,
                                       .threads = own,
                                       .observer = deps->observer,
                                       .cache = deps->cache,
                                       .seed = deps->seed},
                            alerts, supervisor_actor(self)));
    add_stage(devices.back().address(), names.back());
  }
  routes.emplace(names);
  log.emplace(deps->logger, deps->clock);
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

void supervisor_state::add_stage(const caf::actor_addr& address, const std::string& stage) {
  members[address] = {Member::Kind::stage, stage};
  drain.stage_runs(stage);
}

void supervisor_state::tell(const std::optional<Fleet::Change>& change) {
  if (!change) return;
  deps->metrics.camera_state(change->watch->name, change->state);
  deps->board.camera(*change->watch, change->state, change->reason);
  if (change->state != CameraState::up) deps->metrics.camera_fps(change->watch->name, 0);
  // A file that is played once ends.
  const bool ends = deps->once && fleet->settings(change->watch->name)->is_file();
  log->changed(*change, drain.stopping() || ends);
  if (change->first_of_them) self->send(alerts, change->watch);
  // Its next owner tells how it is.
  const bool handed_over =
      deps->claims && change->leaving && !change->returns && !removed.contains(change->watch->name);
  if (handed_over) return;
  self->send(alerts, StatusChange{change->watch->ref(), change->state, change->reason});
}

void supervisor_state::report(const CameraReport& report) {
  tell(fleet->report(report.camera, report.state, report.reason));
  if (report.failed) fleet->gave_up(report.camera, report.reason);
  if (report.state != CameraState::up) return;
  dialer->delivers({report.camera});
  dial();
}

void supervisor_state::lost(const caf::down_msg& message) {
  const auto member = members.extract(message.source);
  if (!member) return;
  const auto& [kind, who] = member.mapped();
  const bool failed = message.reason != caf::exit_reason::normal;
  switch (kind) {
    case Member::Kind::camera:
      camera_lost(who, failed);
      settle();
      finish_if_ended();
      answer_waiting();
      return dial();
    case Member::Kind::recorder:
      recorder_lost(message.source.id(), failed);
      return dial();
    case Member::Kind::stage:
      return stage_lost(who, message.reason);
  }
}

void supervisor_state::stage_lost(const std::string& stage, const caf::error& reason) {
  deps->board.silent(stage);
  if (drain.stage_ended(stage, reason == caf::exit_reason::normal)) {
    fail("the " + stage + " actor failed: " + reason_of(reason, self->system()));
  } else if (drain.finishing() && reason == caf::sec::runtime_error) {
    // It was asked to end, and tells what has not come through.
    fleet->fail(stage + ": " + reason_of(reason, self->system()));
  }
  answer_waiting();
}

void supervisor_state::tick() {
  deps->board.beat();
  for (const Fleet::Change& change : fleet->watch(deps->clock.now())) tell(change);
  end_stranded();
  log->tick();
  self->delayed_send(self, kWatchTick, tick_atom_v);
}

// Their device cannot be reached, and nobody knows whether it ever will: what it has of them is lost.
void supervisor_state::end_stranded() {
  if (!deps->devices_elsewhere) return;
  for (const std::string& camera : fleet->leaving())
    if (!routes->is_watched(camera)) self->send<caf::message_priority::high>(alerts, end_atom_v, camera);
}

void supervisor_state::reload(const CameraList& list) {
  // Every file has been played to its end: nothing would take the frames of a camera that starts now.
  if (drain.finishing()) return;
  const bool watched = !fleet->all_ended();
  // Ahead of their ends.
  removed = {list.removed.begin(), list.removed.end()};
  for (const std::string& camera : list.removed)
    self->send<caf::message_priority::high>(alerts, removed_atom_v, camera);
  const Fleet::Plan plan = fleet->reload(list.cameras);
  for (const std::string& camera : plan.start) want_camera(camera);
  bool moved = false;
  for (const CameraPtr& camera : list.cameras) {
    const Tenure& tenure = camera->tenure;
    if (tenure.device.empty() && tenure.withheld.empty()) continue;
    const auto decision =
        tenure.withheld.empty()
            ? routes->assign(camera->name, tenure.device, FormerDevice{tenure.former, tenure.has_same_stream})
            : routes->withhold(camera->name, tenure.withheld);
    if (!decision) continue;
    route(*decision);
    moved = true;
  }
  for (const CameraPtr& camera : plan.alter) {
    const WatchPtr watch = fleet->watch_settings(camera->name);
    deps->metrics.camera_added(*watch);
    self->send(cameras.at(camera->name), camera, watch);
    if (recordings) recordings->alter(*camera);
  }
  for (const std::string& camera : plan.stop) stop_camera(camera);
  for (const WatchPtr& watch : plan.end) drop_sources(watch->name);
  end(plan.end);
  // The device that was to end them may not be theirs any more.
  if (moved) end(fleet->orphans());
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
    if (recordings) stop_recorder(recordings->remove(camera));
    routes->remove(camera);
    self->send(router, forget_atom_v, camera);
    self->send(alerts, forget_atom_v, camera);
  }
  for (const std::string& camera : departed.start) {
    drop_sources(camera);
    want_camera(camera);
  }
}

void supervisor_state::ended(const std::string& camera) {
  // A file that is at its end goes on nowhere.
  if (fleet->ended(camera) && deps->claims)
    self->send<caf::message_priority::high>(alerts, removed_atom_v, camera);
  settle();
  finish_if_ended();
  dial();
}

void supervisor_state::stop_camera(const std::string& camera) {
  drop_sources(camera);
  fleet->pulse(camera)->cancel();
  self->send(cameras.at(camera), stop_atom_v);
}

void supervisor_state::stop() {
  if (!drain.stop()) return;
  fleet->stop();
  deps->board.phase(RunPhase::draining);
  for (const auto& [camera, handle] : cameras) stop_camera(camera);
  if (recordings)
    for (const RecorderFleet::RecorderId recorder : recordings->stop()) stop_recorder(recorder);
  // Nothing is opened any more.
  reach.reset();
  dialer.emplace(deps->dial);
  end(fleet->orphans());
  self->delayed_send(self, deps->grace / 2, force_atom_v);
  self->delayed_send(self, deps->grace, giveup_atom_v);
  // Of cameras that were never begun, nothing is under way.
  finish_if_ended();
}

// Half of the grace is over.
void supervisor_state::force() {
  end(fleet->remaining());
  self->send(alerts, force_atom_v);
}

// One that failed early may never have joined, so that nobody there knows it.
void supervisor_state::end(const std::vector<WatchPtr>& watches) {
  for (const WatchPtr& watch : watches) {
    self->send(router, watch);
    self->send(router, end_atom_v, watch->name);
  }
}

void supervisor_state::finish_if_ended() {
  // A node of a fleet may have no camera for a while.
  if (!fleet->all_ended() || (deps->devices_elsewhere && !drain.stopping())) return;
  drain.completed();
  finish_pipeline();
}

void supervisor_state::finish_pipeline() {
  if (!drain.finish()) return;
  // Plain messages, not exits, which would overtake what was sent before. Who could not be started is not
  // there.
  if (router) self->send(router, stop_atom_v);
  for (const device_actor& device : devices) self->send(device, stop_atom_v);
  if (alerts) self->send(alerts, stop_atom_v);
  if (evidence) self->send(evidence, stop_atom_v);
  // One that was asked to stop has its bound.
  if (!drain.stopping()) self->delayed_send(self, deps->grace, giveup_atom_v);
}

void supervisor_state::fail(const std::string& why) {
  fleet->fail(why);
  stop();
  finish_pipeline();
}

// What alerts there are is written down; what is still computed is lost with the process.
void supervisor_state::give_up() {
  finish_pipeline();
  drain.give_up();
  self->delayed_send(self, kLastWords, giveup_atom_v);
  answer_waiting();
}

void supervisor_state::answer_waiting() {
  const auto& outcome = drain.outcome(fleet->failures());
  if (!outcome || waiting.empty()) return;
  for (auto& promise : waiting) promise.deliver(*outcome);
  waiting.clear();
  self->quit();
}

void supervisor_state::abandon(const std::string& why) {
  // Before whoever waits ends the process.
  finish_pipeline();
  reach.reset();
  for (const auto& [camera_name, camera] : cameras) self->send_exit(camera, caf::exit_reason::user_shutdown);
  for (const auto& [id, recorder] : recorders) self->send_exit(recorder, caf::exit_reason::user_shutdown);
  try {
    // They may block in their sources, and hear of nothing else.
    for (const auto& [camera_name, camera] : cameras) fleet->pulse(camera_name)->cancel();
    if (recordings) recordings->stop();
  } catch (const std::exception&) {
    // It was left in the middle of something: those that are not known are not waited for.
  }
  // A promise that is dropped tells nobody.
  for (auto& promise : waiting) promise.deliver(DrainReport{false, false, {why}});
  waiting.clear();
}

supervisor_actor::behavior_type supervisor(supervisor_actor::stateful_pointer<supervisor_state> self,
                                           PipelineDeps deps) {
  set_handlers(self, deps.logger);
  self->set_exception_handler(
      [self, &logger = deps.logger](caf::scheduled_actor*, std::exception_ptr& thrown) -> caf::error {
        caf::error fault = fault_of(thrown);
        const std::string why = "the supervisor failed: " + reason_of(fault, self->system());
        logger.error("{}", why);
        self->state.abandon(why);
        return fault;
      });
  supervisor_state& state = self->state;
  state.fleet.emplace(deps.cameras, deps.seed);
  state.deps.emplace(std::move(deps));
  self->set_down_handler([self](caf::down_msg& message) { self->state.lost(message); });
  state.start_pipeline();
  const auto sender = [self] { return caf::actor_cast<caf::actor_addr>(self->current_sender()); };
  return {
      [self](const CameraReport& report) { self->state.report(report); },
      [self, sender](const SourceRest& rest) { self->state.rest(rest, sender()); },
      [self, sender](const RecorderReport& report) { self->state.report(report, sender()); },
      [self](const ReachReport& report) { self->state.report(report); },
      [self](dial_atom, std::uint64_t timer) {
        if (self->state.turn_timer.rings(timer)) self->state.dial();
      },
      [self](const DeviceReport& report) { self->state.report(report); },
      [self](end_atom, const std::string& camera) { self->state.ended(camera); },
      [self](tick_atom) { self->state.tick(); },
      [self](stages_atom) {
        return Stages{self->state.router, self->state.alerts};
      },
      [self](reload_atom, const CameraList& list) { self->state.reload(list); },
      [self](stop_atom) { self->state.stop(); },
      [self](force_atom) { self->state.force(); },
      [self](giveup_atom) { self->state.give_up(); },
      [self](wait_atom) -> caf::result<DrainReport> {
        auto promise = self->make_response_promise<DrainReport>();
        self->state.waiting.push_back(promise);
        self->state.answer_waiting();
        return promise;
      },
  };
}

}  // namespace vigil::actors
