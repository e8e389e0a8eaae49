// The shell around `AlertDesk`. Waits for disks, so it wants a thread of its own.
#pragma once

#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/alerts/alert_desk.h"
#include "actors/messages/messages.h"

namespace vigil::actors {

struct AlertsDeps {
  AlertDesk::Options options;
  Outbox& outbox;
  Publisher& publisher;
  const config::Clock& clock;
  Metrics& metrics;
  spdlog::logger& logger;
};

struct alerts_state {
  /// Says once that the outbox fails, and once that it works again.
  void log_failure();

  std::optional<AlertDesk> desk;
  spdlog::logger* logger = nullptr;
  supervisor_actor supervisor;
  std::string logged;
  static inline const char* name = "alerts";
};

alerts_actor::behavior_type alerts(alerts_actor::stateful_pointer<alerts_state> self, AlertsDeps deps,
                                   supervisor_actor supervisor);

}  // namespace vigil::actors
