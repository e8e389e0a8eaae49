#include "engine/run/executor.h"

#include <algorithm>
#include <cstddef>
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

const Executor::Entry* Executor::next_entry() const {
  const Entry* next = nullptr;
  std::tuple<bool, base::Clock::TimePoint, std::uint64_t> first;
  for (const Entry& entry : sources_) {
    const auto due = entry.source->due();
    if (!due) continue;
    const std::tuple place(gathers(*entry.source), *due, entry.served);
    if (next != nullptr && place >= first) continue;
    next = &entry;
    first = place;
  }
  return next;
}

WorkSource* Executor::next() const {
  const Entry* entry = next_entry();
  return entry == nullptr ? nullptr : entry->source;
}

bool Executor::run_one() {
  const Entry* next = next_entry();
  if (next == nullptr) return false;
  sources_[static_cast<std::size_t>(next - sources_.data())].served = ++turn_;
  Turn turn{clock_.now()};
  for (const Entry& entry : sources_)
    if (&entry != next && !gathers(*entry.source)) turn.until = std::min(turn.until, entry.source->due().value_or(turn.until));
  next->source->work(turn);
  return true;
}

}  // namespace vigil::run
