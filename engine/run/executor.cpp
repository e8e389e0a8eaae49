#include "engine/run/executor.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace vigil::run {

Executor::Executor(const base::Clock& clock, const std::vector<WorkSource*>& sources) : clock_(clock) {
  for (WorkSource* source : sources) sources_.push_back({source});
}

bool Executor::gathers(const WorkSource& source) const {
  const auto until = source.gathers_until();
  return until && clock_.now() < *until;
}

WorkSource* Executor::next() const {
  WorkSource* next = nullptr;
  std::tuple<bool, base::Clock::TimePoint, std::uint64_t> first;
  for (const Entry& entry : sources_) {
    const auto due = entry.source->due();
    if (!due) continue;
    const std::tuple place(gathers(*entry.source), *due, entry.served);
    if (next != nullptr && place >= first) continue;
    next = entry.source;
    first = place;
  }
  return next;
}

void Executor::run(WorkSource& source) {
  Turn turn{clock_.now()};
  for (Entry& entry : sources_) {
    if (entry.source == &source) {
      entry.served = ++turn_;
    } else if (!gathers(*entry.source)) {
      turn.until = std::min(turn.until, entry.source->due().value_or(turn.until));
    }
  }
  source.work(turn);
}

bool Executor::run_one() {
  WorkSource* source = next();
  if (source != nullptr) run(*source);
  return source != nullptr;
}

}  // namespace vigil::run
