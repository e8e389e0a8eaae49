#include "actors/supervisor/dialer.h"

#include <algorithm>

namespace vigil::actors {
namespace {

/// A camera that delivered before may fail so often, while it starts again, until others are tried before it.
constexpr int kPatientFailures = 5;
constexpr std::chrono::seconds kExhaustedRest{1};
constexpr std::size_t kLeastForOthers = 64;

}  // namespace

Dialer::Limits Dialer::limits_for(std::uint64_t descriptors) {
  Limits limits;
  const std::uint64_t others = std::max<std::uint64_t>(descriptors / 2, kLeastForOthers);
  limits.descriptors = descriptors > others ? static_cast<std::size_t>(descriptors - others) : 1;
  limits.questions = std::clamp<std::size_t>(limits.descriptors / 4, 1, limits.questions);
  return limits;
}

void Dialer::add(const SourceId& id, Way way, std::size_t descriptors, TimePoint now) {
  remove(id);
  Entry& entry = entries_[id];
  entry.id = id;
  entry.way = way;
  entry.descriptors = descriptors;
  put(entry, waiting_, now);
}

std::optional<std::uint64_t> Dialer::remove(const SourceId& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  const bool asked = entry.state == State::asking;
  const std::uint64_t ticket = entry.ticket;
  leave(entry);
  if (scout_ == id) scout_.reset();
  entries_.erase(found);
  return asked ? std::optional(ticket) : std::nullopt;
}

void Dialer::put(Entry& entry, Queue& queue, TimePoint when) {
  entry.queue = &queue;
  entry.place = {when, order_++};
  queue.emplace(entry.place, &entry);
}

void Dialer::take(Entry& entry) {
  if (entry.queue != nullptr) entry.queue->erase(entry.place);
  entry.queue = nullptr;
}

// Gives back all that the entry holds, whatever it does.
void Dialer::leave(Entry& entry) {
  switch (entry.state) {
    case State::waiting:
      break;
    case State::queued:
      --queued_;
      break;
    case State::asking:
      tickets_.erase(entry.ticket);
      --asking_;
      --held_;
      break;
    case State::opening:
      free_slot(entry);
      held_ -= entry.descriptors;
      break;
    case State::delivering:
      held_ -= entry.descriptors;
      break;
  }
  untold_.erase(&entry);
  take(entry);
  entry.state = State::waiting;
}

void Dialer::enqueue(Entry& entry) {
  entry.state = State::queued;
  ++queued_;
  const bool asks = entry.way == Way::asked && entry.asking == Asking::due;
  Queue& queue = asks ? unasked(entry.hope) : ready(entry.hope);
  put(entry, entry.way == Way::file ? files_ : queue, entry.place.first);
  if (!entry.told) untold_.insert(&entry);
}

bool Dialer::has_room(std::size_t descriptors) {
  const bool fits = held_ + descriptors <= limits_.descriptors;
  if (!fits) short_of_descriptors_ = true;
  return fits;
}

bool Dialer::has_slot(Hope hope) const {
  return opens_ < limits_.opens && (hope != Hope::failed || repeats_ < limits_.repeats);
}

// One whose patience is over has none any more.
void Dialer::free_slot(Entry& entry) {
  if (entry.queue != &opening_) return;
  take(entry);
  if (entry.way == Way::file) {
    --file_opens_;
    return;
  }
  --opens_;
  if (entry.hope == Hope::failed) --repeats_;
}

void Dialer::open(Entry& entry, TimePoint now, Turn& turn) {
  leave(entry);
  entry.state = State::opening;
  entry.told = false;
  held_ += entry.descriptors;
  put(entry, opening_, now + (entry.way == Way::file ? limits_.file_patience : limits_.patience));
  if (entry.way == Way::file) {
    ++file_opens_;
  } else {
    ++opens_;
    if (entry.hope == Hope::failed) ++repeats_;
  }
  turn.open.push_back(entry.id);
}

void Dialer::ask(Entry& entry, Turn& turn) {
  leave(entry);
  entry.state = State::asking;
  entry.ticket = ++last_ticket_;
  tickets_[entry.ticket] = &entry;
  ++asking_;
  ++held_;
  turn.ask.push_back({entry.ticket, entry.id});
}

Dialer::Turn Dialer::next(TimePoint now) {
  Turn turn;
  expire(now);
  while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
    Entry& entry = *waiting_.begin()->second;
    take(entry);
    enqueue(entry);
  }
  if (exhausted_) {
    if (now < paused_until_) return turn;
    // The scout has failed for another reason, or not at all.
    if (!scout_) {
      open_scout(now, turn);
      return turn;
    }
    exhausted_ = false;
    scout_.reset();
  }
  short_of_descriptors_ = false;
  while (!files_.empty() && file_opens_ < limits_.files && has_room(files_.begin()->second->descriptors))
    open(*files_.begin()->second, now, turn);
  for (const Hope hope : {Hope::delivered, Hope::untried, Hope::failed}) serve(hope, now, turn);
  if (!short_of_descriptors_) return turn;
  for (Entry* entry : untold_) {
    entry->told = true;
    turn.without_descriptor.push_back(entry->id);
  }
  untold_.clear();
  return turn;
}

void Dialer::expire(TimePoint now) {
  while (!opening_.empty() && opening_.begin()->first.first <= now) free_slot(*opening_.begin()->second);
}

void Dialer::serve(Hope hope, TimePoint now, Turn& turn) {
  Queue& wants_thread = ready(hope);
  while (!wants_thread.empty() && has_slot(hope) && has_room(wants_thread.begin()->second->descriptors))
    open(*wants_thread.begin()->second, now, turn);
  Queue& wants_answer = unasked(hope);
  while (!wants_answer.empty()) {
    Entry& first = *wants_answer.begin()->second;
    const bool plenty = hope != Hope::failed && opens_ < limits_.unasked && wants_thread.empty();
    if (plenty && has_slot(hope) && has_room(first.descriptors)) {
      open(first, now, turn);
    } else if (asking_ < limits_.questions && has_room(1)) {
      ask(first, turn);
    } else {
      return;
    }
  }
}

void Dialer::open_scout(TimePoint now, Turn& turn) {
  const auto open_first = [&](Queue& queue) {
    if (queue.empty()) return false;
    Entry& first = *queue.begin()->second;
    scout_ = first.id;
    paused_until_ = now + kExhaustedRest;
    open(first, now, turn);
    return true;
  };
  if (open_first(files_)) return;
  for (const Hope hope : {Hope::delivered, Hope::untried, Hope::failed})
    if (open_first(ready(hope)) || open_first(unasked(hope))) return;
}

std::optional<Dialer::TimePoint> Dialer::wake() const {
  std::optional<TimePoint> wake;
  const auto at = [&wake](TimePoint time) { wake = wake ? std::min(*wake, time) : time; };
  if (!waiting_.empty()) at(waiting_.begin()->first.first);
  if (has_queued()) {
    if (!opening_.empty()) at(opening_.begin()->first.first);
    if (exhausted_) at(paused_until_);
  }
  return wake;
}

std::optional<SourceId> Dialer::answered(std::uint64_t ticket, bool reachable) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return std::nullopt;
  Entry& entry = *found->second;
  leave(entry);
  if (reachable) {
    entry.asking = Asking::answered;
    enqueue(entry);
  }
  return entry.id;
}

void Dialer::delivers(const SourceId& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.state != State::opening) return;
  Entry& entry = found->second;
  free_slot(entry);
  entry.state = State::delivering;
  entry.hope = Hope::delivered;
  entry.failures = 0;
  entry.asking = Asking::due;
  tried(id);
}

void Dialer::rest(const SourceId& id, TimePoint until) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const bool opened = entry.state == State::opening;
  const bool delivered = entry.state == State::delivering;
  if (opened) tried(id);
  leave(entry);
  // A server that answers and then cannot be opened may have been kept busy by the question: the next attempt
  // goes without.
  entry.asking = opened && entry.asking == Asking::answered ? Asking::waived : Asking::due;
  if (!delivered && (++entry.failures > kPatientFailures || entry.hope != Hope::delivered))
    entry.hope = Hope::failed;
  put(entry, waiting_, until);
}

// Whatever came of it, there were descriptors for it.
void Dialer::tried(const SourceId& id) {
  if (scout_ != id) return;
  scout_.reset();
  exhausted_ = false;
}

void Dialer::no_descriptor(const SourceId& id, TimePoint now) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  exhausted_ = true;
  paused_until_ = now + kExhaustedRest;
  if (scout_ == id) scout_.reset();
  leave(found->second);
  put(found->second, waiting_, now);
}

std::optional<bool> Dialer::exhaustion_news() {
  if (std::exchange(exhaustion_told_, exhausted_) == exhausted_) return std::nullopt;
  return exhausted_;
}

std::optional<std::uint64_t> Dialer::ended(const SourceId& id, const SourceEnd& end, TimePoint now) {
  switch (end.next) {
    case SourceEnd::Next::gone:
      return remove(id);
    case SourceEnd::Next::rest:
      rest(id, end.until);
      break;
    case SourceEnd::Next::no_descriptor:
      no_descriptor(id, now);
      break;
  }
  return std::nullopt;
}

}  // namespace vigil::actors
