#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "actors/alerts/outbox_parts.h"

namespace vigil::actors {
namespace {

class MemoryOutbox final : public Outbox {
 public:
  using Outbox::acknowledge;
  using Outbox::append;
  using Outbox::continue_from;

  MemoryOutbox(config::RetentionClock* ages, std::size_t max_bytes) : ages_(ages), max_bytes_(max_bytes) {}

  void refresh() override {}

  std::uint64_t last_sequence(const std::string& topic) const override {
    const auto entry = sequences_.find(topic);
    return entry == sequences_.end() ? 0 : entry->second;
  }

  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    return continue_from({}, events, notes);
  }

  std::uint64_t continue_from(std::span<const Continuation> topics, std::span<const OutboxEvent> events,
                              std::span<const OutboxNote> notes) override {
    const auto sequences = sequences_after(*this, events, topics);
    make_room(events);
    for (const Continuation& topic : topics) forget_behind(topic.topic, std::min(topic.last, topic.stays));
    for (const OutboxNote& note : notes) {
      if (note.value) {
        notes_[note.key] = *note.value;
      } else {
        notes_.erase(note.key);
      }
    }
    for (const auto& [topic, sequence] : sequences) sequences_[topic] = sequence;
    if (events.empty()) return 0;
    const base::Clock::WallTime stamp = ages_ != nullptr ? ages_->now() : base::Clock::WallTime{};
    const std::uint64_t first = next_;
    for (const OutboxEvent& event : events) {
      const std::uint64_t position = next_++;
      OutboxEvent& kept = events_[position];
      kept = event;
      kept.position = position;
      positions_[{event.topic, event.sequence}] = position;
      pending_.insert(position);
      stamps_[position] = stamp;
      bytes_ += size_of(event);
    }
    return first;
  }

  std::map<std::string, std::string> notes() const override { return notes_; }

  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    std::vector<OutboxEvent> result;
    for (const std::uint64_t position : pending_) {
      if (result.size() == limit) break;
      result.push_back(events_.at(position));
    }
    return result;
  }

  std::vector<OutboxEvent> unacknowledged_after(std::uint64_t position, std::size_t limit) const override {
    std::vector<OutboxEvent> result;
    for (auto each = pending_.upper_bound(position); each != pending_.end() && result.size() < limit; ++each)
      result.push_back(events_.at(*each));
    return result;
  }

  void acknowledge(std::span<const std::uint64_t> positions) override {
    for (const std::uint64_t position : positions) pending_.erase(position);
  }

  std::size_t prune(base::Duration older_than) override {
    if (ages_ == nullptr) return 0;
    const base::Clock::WallTime before = ages_->now() - older_than;
    return forget([&, count = std::size_t{0}](std::uint64_t position) mutable {
      return stamps_.at(position) < before && count++ < kPruneAtOnce;
    });
  }

  const std::string& identity() const override { return identity_; }

  std::uint64_t last_position() const override { return next_ - 1; }

  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    const auto entry = positions_.lower_bound({topic, sequence});
    if (entry == positions_.end() || entry->first.first != topic) return std::nullopt;
    return entry->second;
  }

  Replay replay(const ReplayQuery& query) const override {
    Replay result{{}, query.after, false};
    std::size_t scanned = 0;
    std::size_t bytes = 0;
    for (auto entry = events_.upper_bound(query.after); entry != events_.end(); ++entry) {
      const OutboxEvent& event = entry->second;
      const bool wanted = is_wanted(query, event.topic, event.time);
      if (scanned++ == query.max_scanned || (wanted && is_full(query, result.events.size(), bytes, event))) {
        result.more = true;
        return result;
      }
      if (wanted) {
        bytes += size_of(event);
        result.events.push_back(event);
      }
      result.cursor = event.position;
    }
    result.cursor = std::max(result.cursor, last_position());
    return result;
  }

  std::vector<OutboxEvent> last_events(std::size_t each) const override {
    std::vector<OutboxEvent> result;
    for (const auto& [topic, last] : sequences_)
      for (auto entry = positions_.lower_bound({topic, last - std::min<std::uint64_t>(last, each) + 1});
           entry != positions_.end() && entry->first.first == topic; ++entry)
        result.push_back(events_.at(entry->second));
    return result;
  }

 private:
  /// From the front, as long as `goes` says so for what may go; returns how many.
  template <class F>
  std::size_t forget(F goes) {
    std::size_t count = 0;
    for (auto entry = events_.begin(); entry != events_.end();) {
      const OutboxEvent& event = entry->second;
      if (pending_.contains(entry->first) || event.sequence == last_sequence(event.topic)) {
        ++entry;
        continue;
      }
      if (!goes(entry->first)) break;
      positions_.erase({event.topic, event.sequence});
      stamps_.erase(entry->first);
      bytes_ -= size_of(event);
      entry = events_.erase(entry);
      ++count;
    }
    return count;
  }

  void forget_behind(const std::string& topic, std::uint64_t sequence) {
    auto entry = positions_.upper_bound({topic, sequence});
    while (entry != positions_.end() && entry->first.first == topic) {
      const std::uint64_t position = entry->second;
      bytes_ -= size_of(events_.at(position));
      pending_.erase(position);
      stamps_.erase(position);
      events_.erase(position);
      entry = positions_.erase(entry);
    }
  }

  void make_room(std::span<const OutboxEvent> events) {
    std::size_t more = 0;
    for (const OutboxEvent& event : events) more += size_of(event);
    const auto fits = [&] { return more <= max_bytes_ && bytes_ <= max_bytes_ - more; };
    if (!fits()) forget([&](std::uint64_t) { return !fits(); });
    if (!fits()) {
      throw OutboxError("outbox in memory: is full (" + std::to_string(max_bytes_ >> 20) + " MiB)");
    }
  }

  config::RetentionClock* ages_;
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::map<std::uint64_t, base::Clock::WallTime> stamps_;
  std::map<std::uint64_t, OutboxEvent> events_;
  std::set<std::uint64_t> pending_;
  std::map<std::string, std::uint64_t> sequences_;
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> positions_;
  std::map<std::string, std::string> notes_;
  std::uint64_t next_ = 1;
  std::string identity_ = new_outbox_identity();
};

}  // namespace

std::unique_ptr<Outbox> make_memory_outbox(config::RetentionClock* ages, std::size_t max_bytes) {
  return std::make_unique<MemoryOutbox>(ages, max_bytes);
}

}  // namespace vigil::actors
