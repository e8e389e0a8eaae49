#include "cluster/topics/event_ledger.h"

#include <algorithm>
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
  if (opens_gap(message)) return false;
  // Whatever the pages up to here did not bring is not kept any more, or from before the beginning.
  const bool covered = blind_ || message.position <= cursor_;
  const auto last = last_.find(message.topic);
  if (last == last_.end()) {
    if (!covered && message.sequence > 1) return false;
    if (!covered || blind_ || options_.last_values || moved_) {
      show(message);
    } else {
      know(message);
    }
    return true;
  }
  if (message.sequence <= last->second) {
    if (!seen_.is_new(message)) return true;
    // Nothing that was told before: it may be of another outbox, which a page says. Servers of a fleet that
    // give numbers anew have lost everything.
    if (!options_.fleet) {
      behind_ = true;
    } else if (!covered && message.sequence >= first_.at(message.topic)) {
      restart(outbox_);
    }
    return true;
  }
  if (message.sequence > last->second + 1 && !covered) return false;
  show(message);
  return true;
}

// It comes out no more.
void EventLedger::know(const TopicMessage& message) {
  last_[message.topic] = message.sequence;
  first_.try_emplace(message.topic, message.sequence);
  seen_.add(message);
}

void EventLedger::show(const TopicMessage& message) {
  const auto [last, first] = last_.try_emplace(message.topic, message.sequence);
  if (first) {
    first_.try_emplace(message.topic, message.sequence);
  } else {
    if (message.sequence <= last->second) return;
    if (const std::uint64_t missing = message.sequence - last->second - 1; missing > 0) {
      out_.push_back(Missed{message.topic, missing});
    }
    last->second = message.sequence;
  }
  if (seen_.add(message)) out_.push_back(message);
}

// Whether events before this one may be missing that no page after the cursor brings.
bool EventLedger::opens_gap(const TopicMessage& message) {
  if (!moved_ || blind_ || checked_.contains(message.topic)) return false;
  const auto last = last_.find(message.topic);
  const std::uint64_t next = last == last_.end() ? 1 : last->second + 1;
  if (message.sequence <= next) {
    if (!gaps_.contains(message.topic)) checked_.insert(message.topic);
    return false;
  }
  Gap& gap = gaps_[message.topic];
  gap.topic = message.topic;
  if (last != last_.end()) gap.from = next;
  gap.to = std::max(gap.to, message.sequence - 1);
  return true;
}

bool EventLedger::gap_page(const ReplayPage& page) {
  if (gaps_.empty()) return false;
  blind_ = false;
  if (is_replaced(page)) return replaced(page);
  const auto entry = gaps_.begin();
  Gap& gap = entry->second;
  bool reached = !page.more;
  for (const TopicMessage& event : page.events) {
    if (event.topic != gap.topic || event.sequence > gap.to) {
      reached = reached || event.topic == gap.topic;
      continue;
    }
    show(event);
    reached = reached || event.sequence == gap.to;
  }
  gap.after = page.cursor;
  if (!reached) return false;
  checked_.insert(gap.topic);
  gaps_.erase(entry);
  settle();
  return false;
}

void EventLedger::move() {
  moved_ = moved_ || begun_;
  begun_ = blind_ = false;
  outbox_.clear();
  cursor_.reset();
  waiting_.clear();
  checked_.clear();
  gaps_.clear();
  behind_ = true;
}

// An outbox never goes back: one that does is another one, such as a copy that was put back.
bool EventLedger::is_replaced(const ReplayPage& page) const {
  return !outbox_.empty() && (page.outbox != outbox_ || (cursor_ && page.newest < *cursor_));
}

bool EventLedger::replaced(const ReplayPage& page) {
  if (options_.fleet) {
    move();
  } else {
    restart(page.outbox);
  }
  return options_.fleet;
}

// All of it may be new.
void EventLedger::restart(const std::string& outbox) {
  outbox_ = outbox;
  last_.clear();
  first_.clear();
  waiting_.clear();
  checked_.clear();
  gaps_.clear();
  moved_ = false;
  cursor_ = 0;
  behind_ = true;
  // Live events wait for those before them.
  begun_ = false;
  out_.push_back(Restarted{});
}

bool EventLedger::page(const ReplayPage& page) {
  blind_ = false;
  if (is_replaced(page)) return replaced(page);
  outbox_ = page.outbox;
  for (const TopicMessage& event : page.events) {
    if (opens_gap(event)) {
      // From here on again, when that is filled.
      cursor_ = event.position - 1;
      behind_ = true;
      return false;
    }
    show(event);
  }
  cursor_ = page.cursor;
  behind_ = page.more;
  if (page.more) return false;
  begun_ = true;
  settle();
  return false;
}

void EventLedger::give_up() {
  blind_ = true;
  gaps_.clear();
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
