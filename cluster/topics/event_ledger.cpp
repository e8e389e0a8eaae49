#include "cluster/topics/event_ledger.h"

#include <utility>

namespace vigil::cluster {

void EventLedger::live(TopicMessage message) {
  if (try_live(message)) return;
  behind_ = true;
  if (waiting_.size() < options_.waiting) waiting_.push_back(std::move(message));
}

// Whether this event is done with: shown, or seen before.
bool EventLedger::try_live(const TopicMessage& message) {
  if (!begun_ && !blind_) return false;
  // Whatever the pages up to here did not bring is not kept any more, or from before the beginning.
  const bool covered = blind_ || message.position <= cursor_;
  const auto last = last_.find(message.topic);
  if (last == last_.end()) {
    if (!covered && message.sequence > 1) return false;
    if (!covered || blind_ || options_.last_values) {
      show(message);
    } else {
      last_[message.topic] = message.sequence;
    }
    return true;
  }
  if (message.sequence <= last->second) {
    // Nothing that was told before: it may be of another outbox, which a page says.
    if (seen_.is_new(message)) behind_ = true;
    return true;
  }
  if (message.sequence > last->second + 1 && !covered) return false;
  show(message);
  return true;
}

void EventLedger::show(const TopicMessage& message) {
  const auto [last, first] = last_.try_emplace(message.topic, message.sequence);
  if (!first) {
    if (message.sequence <= last->second) return;
    if (const std::uint64_t missing = message.sequence - last->second - 1; missing > 0) {
      out_.push_back(Missed{message.topic, missing});
    }
    last->second = message.sequence;
  }
  if (seen_.add(message)) out_.push_back(message);
}

void EventLedger::page(const ReplayPage& page) {
  blind_ = false;
  // An outbox never goes back: one that does is another one, such as a copy that was put back. All of it may
  // be new.
  if (!outbox_.empty() && (page.outbox != outbox_ || (cursor_ && page.newest < *cursor_))) {
    outbox_ = page.outbox;
    last_.clear();
    waiting_.clear();
    cursor_ = 0;
    behind_ = true;
    // Live events wait for those before them.
    begun_ = false;
    out_.push_back(Restarted{});
    return;
  }
  outbox_ = page.outbox;
  for (const TopicMessage& event : page.events) show(event);
  cursor_ = page.cursor;
  behind_ = page.more;
  if (page.more) return;
  begun_ = true;
  settle();
}

void EventLedger::give_up() {
  blind_ = true;
  settle();
}

void EventLedger::settle() {
  std::deque<TopicMessage> waiting = std::exchange(waiting_, {});
  for (TopicMessage& message : waiting) {
    if (try_live(message)) continue;
    behind_ = true;
    waiting_.push_back(std::move(message));
  }
}

std::optional<LedgerEntry> EventLedger::take() {
  if (out_.empty()) return std::nullopt;
  LedgerEntry entry = std::move(out_.front());
  out_.pop_front();
  return entry;
}

}  // namespace vigil::cluster
