#include "actors/evidence/evidence_actor.h"

#include <utility>

#include "actors/messages/log_fields.h"
#include "actors/messages/shell.h"

namespace vigil::actors {
namespace {

constexpr auto kStoreTick = std::chrono::milliseconds(200);

}  // namespace

void evidence_state::tell(EvidenceReport report) {
  if (report.evidence.state == EvidenceState::failed) {
    const LogFields about(LogFields::Fields{{"episode", report.episode}});
    logger->warn("evidence: no clip of episode {}: {}", report.episode, report.evidence.reason);
  }
  self->send(alerts, std::move(report));
}

void evidence_state::look() {
  if (working || !(desk->due() || desk->has_unread())) return;
  working = true;
  self->send(self, work_atom_v);
}

void evidence_state::work() {
  if (auto report = desk->make_next()) return tell(std::move(*report));
  // What nobody waits for.
  desk->read_next();
}

evidence_actor::behavior_type evidence(evidence_actor::stateful_pointer<evidence_state> self,
                                       EvidenceDeps deps) {
  set_handlers(self, deps.logger);
  evidence_state& state = self->state;
  state.logger = &deps.logger;
  state.board = &deps.board;
  state.desk.emplace(EvidenceDesk::Options{.memory = deps.memory}, deps.store, deps.metrics, deps.clock);
  self->send(self, tick_atom_v);
  return {
      [self](const Recording& recording) { self->state.desk->record(recording); },
      [self](const EvidenceRequest& request) {
        self->state.alerts = caf::actor_cast<alerts_actor>(self->current_sender());
        if (auto refused = self->state.desk->ask(request)) self->state.tell(std::move(*refused));
        self->state.look();
      },
      [self](end_atom, const std::string& camera) {
        self->state.desk->end(camera);
        self->state.look();
      },
      [self](tick_atom) {
        self->state.desk->tick();
        // Alerts come without it.
        self->state.board->beat("evidence", kEvidencePatience, /*vital=*/false);
        if (const auto news = self->state.desk->take_news()) self->state.logger->warn("evidence: {}", *news);
        self->state.look();
        self->delayed_send(self, kStoreTick, tick_atom_v);
      },
      [self](work_atom) {
        self->state.working = false;
        self->state.work();
        self->state.look();
      },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
