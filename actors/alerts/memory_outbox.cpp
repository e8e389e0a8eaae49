#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "actors/alerts/outbox_parts.h"

namespace vigil::actors {
namespace {

class MemoryOutbox final : public Outbox {
 public:
  std::uint64_t last_sequence(const std::string& topic) const override {
    const auto entry = sequences_.find(topic);
    return entry == sequences_.end() ? 0 : entry->second;
  }

  std::uint64_t append(const OutboxEvent& event) override {
    if (event.sequence != last_sequence(event.topic) + 1)
      throw std::invalid_argument("outbox: a sequence with a gap");
    const std::uint64_t position = next_++;
    OutboxEvent& kept = events_[position];
    kept = event;
    kept.position = position;
    sequences_[event.topic] = event.sequence;
    positions_[{event.topic, event.sequence}] = position;
    pending_.insert(position);
    return position;
  }

  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    std::vector<OutboxEvent> result;
    for (const std::uint64_t position : pending_) {
      if (result.size() == limit) break;
      result.push_back(events_.at(position));
    }
    return result;
  }

  void acknowledge(std::uint64_t position) override { pending_.erase(position); }

  std::size_t prune(config::Clock::WallTime before) override {
    return std::erase_if(events_, [&](const auto& entry) {
      const OutboxEvent& event = entry.second;
      const bool old = event.time < before && !pending_.contains(entry.first) &&
                       event.sequence != last_sequence(event.topic);
      if (old) positions_.erase({event.topic, event.sequence});
      return old;
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
  std::map<std::uint64_t, OutboxEvent> events_;
  std::set<std::uint64_t> pending_;
  std::map<std::string, std::uint64_t> sequences_;
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> positions_;
  std::uint64_t next_ = 1;
  std::string identity_ = new_outbox_identity();
};

}  // namespace

std::unique_ptr<Outbox> make_memory_outbox() {
  return std::make_unique<MemoryOutbox>();
}

}  // namespace vigil::actors
