#include "actors/alerts/alerts_actor.h"

#include <utility>

#include "actors/messages/log_fields.h"
#include "actors/messages/patience.h"
#include "actors/messages/shell.h"

namespace vigil::actors {
namespace {

// How long a new subscriber waits for the last event of its topics at most.
constexpr auto kOutboxTick = std::chrono::milliseconds(50);
constexpr auto kGivenUpEvery = std::chrono::seconds(5);
// Of a camera that came a moment before the end, the gateways are still to say where its series goes on, and
// may have to be found again first. With the 2 s in which they are told, it is within the supervisor's 5 s
// for writing down what was found.
constexpr auto kBooksPatience = std::chrono::seconds(2);

}  // namespace

void alerts_state::log_failure() {
  if (desk->failure() == logged) return;
  logged = desk->failure();
  board->outbox(logged);
  if (logged.empty()) {
    logger->warn("alerts: the outbox works again");
  } else {
    logger->error("alerts: events wait in memory: {}", logged);
  }
}

void alerts_state::log_given_up() {
  const auto now = clock->now();
  if (now < given_up_at) return;
  const AlertDesk::GivenUp lost = desk->take_given_up();
  if (lost.events == 0) return;
  given_up_at = now + kGivenUpEvery;
  logger->warn("alerts: events of {} that are not told, since another node went on without them: {}",
               lost.who(), lost.events);
}

void alerts_state::observe(const WindowAnswersPtr& window, const stream_actor& source) {
  sources[window] = source;
  desk->observe(window);
  settle();
  flush_later(caf::message_priority::high);
  self->send(source, grant_atom_v, std::uint32_t{1});
}

void alerts_state::settle() {
  for (AlertDesk::Request& request : desk->take_requests()) {
    self->send(sources.at(request.window), request.explain);
    const std::uint64_t ticket = request.explain.ticket;
    request.window.reset();
    requests.insert_or_assign(ticket, Asked{std::move(request), clock->now()});
  }
  for (const WindowAnswersPtr& window : desk->take_observed()) {
    const auto source = sources.extract(window);
    if (source && window->id) self->send(source.mapped(), Done{*window->id});
  }
  for (const SeriesClaims::Claim& claim : desk->take_claims())
    self->send(claims, claim_atom_v, claim.camera, claim.fence);
  ask_for_evidence();
}

void alerts_state::explained(const Explanation& explanation) {
  const auto request = requests.extract(explanation.ticket);
  const bool there = explanation.failure.empty();
  if (!there && request) {
    const AlertDesk::Request& asked = request.mapped().request;
    const LogFields about(*asked.watch);
    logger->error("alerts: camera {}: no explanation for rule {}: {}", asked.watch->name,
                  asked.watch->rules[asked.explain.rule].name, explanation.failure);
  }
  desk->explained(explanation.ticket, there ? std::optional(explanation.text) : std::nullopt);
  flush_later(caf::message_priority::high);
  tell_ended();
}

void alerts_state::tell(const StatusChange& change) {
  const WatchPtr watch = book.refer(change.watch);
  if (!watch) {
    logger->error("alerts: ignored a state of camera {}, whose settings it does not know",
                  change.watch.camera);
    return;
  }
  desk->status(watch, change.state, change.reason);
  settle();
  flush_later(caf::message_priority::normal);
}

void alerts_state::flush_later(caf::message_priority priority) {
  log_failure();
  if (desk->backlog() == 0 && !desk->takes_over()) return;
  const bool soon = priority == caf::message_priority::high;
  if (std::exchange(soon ? flushing_soon : flushing, true)) return;
  if (soon) {
    self->send<caf::message_priority::high>(self, work_atom_v);
  } else {
    self->send(self, work_atom_v);
  }
}

void alerts_state::flush() {
  flushing = flushing_soon = false;
  const bool more = desk->flush();
  settle();
  log_failure();
  if (more) flush_later(caf::message_priority::normal);
  end_if_settled();
}

void alerts_state::stop() {
  stop_by = clock->now() + kBooksPatience;
  desk->claim_held();
  flush();
}

void alerts_state::end_if_settled() {
  if (!stop_by || (desk->waits_for_books() && clock->now() < *stop_by)) return;
  self->quit(finish());
}

caf::error alerts_state::finish() {
  desk->give_up_evidence();
  desk->finish();
  log_failure();
  given_up_at = {};
  log_given_up();
  const Outbox::Passing lost = desk->lost();
  if (lost.events == 0) return {};
  return caf::make_error(caf::sec::runtime_error, std::to_string(lost.events) +
                                                      (lost.events == 1 ? " event is" : " events are") +
                                                      " lost: " + lost.reason);
}

void alerts_state::ask_for_evidence() {
  for (EvidenceRequest& request : desk->take_evidence_requests()) self->send(evidence, std::move(request));
}

void alerts_state::tick() {
  desk->tick();
  settle();
  board->beat("alerts", kAlertsPatience);
  log_failure();
  log_given_up();
  tell_ended();
  // Of a device that has failed no answer comes, not even late.
  const auto now = clock->now();
  std::erase_if(requests, [&](const auto& entry) { return entry.second.at + kExplanationForgotten < now; });
  self->delayed_send(self, kOutboxTick, tick_atom_v);
  end_if_settled();
}

// A camera has ended when nothing of it waits for the target or for evidence any more.
void alerts_state::tell_ended() {
  std::erase_if(ending, [this](const std::string& camera) {
    if (desk->explains(camera) || desk->awaits_evidence(camera)) return false;
    self->send(supervisor, end_atom_v, camera);
    return true;
  });
}

alerts_actor::behavior_type alerts(alerts_actor::stateful_pointer<alerts_state> self, AlertsDeps deps,
                                   evidence_actor evidence, supervisor_actor supervisor) {
  set_handlers(self, deps.logger);
  alerts_state& state = self->state;
  state.logger = &deps.logger;
  state.board = &deps.board;
  state.clock = &deps.clock;
  state.evidence = std::move(evidence);
  state.supervisor = std::move(supervisor);
  state.claims = std::move(deps.claims);
  deps.options.gather = true;
  deps.options.claims = state.claims != nullptr;
  state.desk.emplace(deps.options, deps.outbox, deps.publisher, deps.metrics, deps.clock);
  self->send(self, tick_atom_v);
  return {
      [self](join_atom) {
        self->send(caf::actor_cast<stream_actor>(self->current_sender()), grant_atom_v, kWindowsUnderWay);
      },
      [self](const WindowAnswersPtr& window) {
        self->state.observe(window, caf::actor_cast<stream_actor>(self->current_sender()));
      },
      [self](const Explanation& explanation) { self->state.explained(explanation); },
      [self](const EvidenceReport& report) {
        self->state.desk->evidence(report);
        self->state.flush_later(caf::message_priority::high);
        self->state.tell_ended();
      },
      [self](const WatchPtr& watch) { self->state.book.put(watch); },
      [self](forget_atom, const std::string& camera) { self->state.book.forget(camera); },
      [self](const StatusChange& change) { self->state.tell(change); },
      [self](const SeriesBooksPtr& books) {
        if (books) self->state.desk->take_over(*books);
        self->state.flush_later(caf::message_priority::high);
      },
      [self](removed_atom, const std::string& camera) {
        self->state.desk->removed(camera);
        self->state.settle();
        self->state.flush_later(caf::message_priority::high);
      },
      [self](lost_atom, const std::string& camera, std::uint64_t fence) {
        self->state.desk->lost(camera, fence);
        self->state.settle();
        self->state.flush_later(caf::message_priority::high);
      },
      [self](end_atom, const std::string& camera) {
        self->state.desk->end(camera);
        self->state.settle();
        self->state.flush_later(caf::message_priority::high);
        if (self->state.evidence) self->send(self->state.evidence, end_atom_v, camera);
        self->state.ending.insert(camera);
        self->state.tell_ended();
      },
      [self](work_atom) { self->state.flush(); },
      [self](tick_atom) { self->state.tick(); },
      [self](force_atom) {
        self->state.desk->let_go();
        self->state.flush_later(caf::message_priority::high);
      },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::actors
