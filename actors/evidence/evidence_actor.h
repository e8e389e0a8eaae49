// The shell around `EvidenceDesk`. Waits for disks and decodes stills, so it wants a thread of its own.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/evidence/evidence_desk.h"
#include "actors/messages/messages.h"
#include "actors/status/status_board.h"

namespace vigil::actors {

struct EvidenceDeps {
  EvidenceStore& store;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Packets of each camera that are held for clips which wait to be written, about.
  std::size_t memory = EvidenceDesk::Options().memory;
};

struct evidence_state {
  explicit evidence_state(evidence_actor::pointer self_pointer) : self(self_pointer) {}

  void tell(EvidenceReport report);
  /// One piece of work for one message, so that requests and `stop` are heard between two.
  void look();
  void work();

  evidence_actor::pointer self;
  std::optional<EvidenceDesk> desk;
  spdlog::logger* logger = nullptr;
  StatusBoard* board = nullptr;
  alerts_actor alerts;
  bool working = false;
  static inline const char* name = "evidence";
};

evidence_actor::behavior_type evidence(evidence_actor::stateful_pointer<evidence_state> self,
                                       EvidenceDeps deps);

}  // namespace vigil::actors
