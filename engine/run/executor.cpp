#include "engine/run/executor.h"

#include <algorithm>
#include <tuple>

namespace vigil::run {

Executor::Executor(const base::Clock& clock, const std::vector<WorkSource*>& sources) : clock_(clock) {
  for (WorkSource* source : sources) sources_.push_back({source});
}

bool Executor::has_work() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const Entry& entry) { return entry.source->due().has_value(); });
}

bool Executor::run_one() {
  Entry* next = nullptr;
  std::optional<base::Clock::TimePoint> earliest;
  for (Entry& entry : sources_) {
    const auto due = entry.source->due();
    if (!due) continue;
    if (next != nullptr && std::tuple(*due, entry.served) >= std::tuple(*earliest, next->served)) continue;
    next = &entry;
    earliest = due;
  }
  if (next == nullptr) return false;
  next->served = ++turn_;
  next->source->work(clock_.now());
  return true;
}

}  // namespace vigil::run
