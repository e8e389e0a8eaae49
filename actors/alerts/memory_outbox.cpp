#include <algorithm>
#include <map>
#include <set>

#include "actors/alerts/outbox.h"

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
      return entry.second.time < before && !pending_.contains(entry.first);
    });
  }

 private:
  std::map<std::uint64_t, OutboxEvent> events_;
  std::set<std::uint64_t> pending_;
  std::map<std::string, std::uint64_t> sequences_;
  std::uint64_t next_ = 1;
};

}  // namespace

std::unique_ptr<Outbox> make_memory_outbox() {
  return std::make_unique<MemoryOutbox>();
}

}  // namespace vigil::actors
