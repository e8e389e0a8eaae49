#include "config/running/reload.h"

#include <exception>
#include <utility>

namespace vigil::config {

Reloader::Reloader(Settings running, Load load) : running_(std::move(running)), load_(std::move(load)) {}

Reloader::Outcome Reloader::reload() {
  Outcome outcome;
  Settings wanted;
  try {
    wanted = load_();
  } catch (const std::exception& error) {
    outcome.message = error.what();
    return outcome;
  }
  outcome.changes = compare(running_, wanted);
  if (!outcome.changes.fixed.empty()) {
    for (const std::string& key : outcome.changes.fixed) {
      outcome.message += (outcome.message.empty() ? "" : "\n") + key +
                         ": cannot change while running; put it back, or start again";
    }
    return outcome;
  }
  outcome.applied = true;
  outcome.message = describe_changes(outcome.changes);
  running_ = std::move(wanted);
  return outcome;
}

}  // namespace vigil::config
