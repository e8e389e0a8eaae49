#include "tests/fleet/sim/disk.h"

#include <algorithm>
#include <utility>

namespace vigil::fleet::sim {

using actors::Outbox;
using actors::OutboxEvent;
using actors::OutboxNote;

class DiskOutbox final : public Outbox {
 public:
  explicit DiskOutbox(Disk& disk) : disk_(disk) {}

  using Outbox::acknowledge;
  using Outbox::append;
  using Outbox::continue_from;
  void refresh() override {}
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner().last_sequence(topic);
  }
  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    const auto first = std::make_shared<std::uint64_t>(0);
    disk_.put([first, events = std::vector<OutboxEvent>(events.begin(), events.end()),
               notes = std::vector<OutboxNote>(notes.begin(), notes.end())](Outbox& outbox) {
      *first = outbox.append(events, notes);
    });
    return *first;
  }
  std::uint64_t continue_from(std::span<const actors::Continuation> topics,
                              std::span<const OutboxEvent> events,
                              std::span<const OutboxNote> notes) override {
    const auto first = std::make_shared<std::uint64_t>(0);
    disk_.put([first, topics = std::vector<actors::Continuation>(topics.begin(), topics.end()),
               events = std::vector<OutboxEvent>(events.begin(), events.end()),
               notes = std::vector<OutboxNote>(notes.begin(), notes.end())](Outbox& outbox) {
      *first = outbox.continue_from(topics, events, notes);
    });
    return *first;
  }
  std::vector<OutboxEvent> unacknowledged_after(std::uint64_t position, std::size_t limit) const override {
    return inner().unacknowledged_after(position, limit);
  }
  std::map<std::string, std::string> notes() const override { return inner().notes(); }
  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return inner().unacknowledged(limit);
  }
  void acknowledge(std::span<const std::uint64_t> positions) override {
    disk_.put([positions = std::vector<std::uint64_t>(positions.begin(), positions.end())](Outbox& outbox) {
      outbox.acknowledge(positions);
    });
  }
  std::size_t prune(base::Duration /*older_than*/) override { return 0; }
  const std::string& identity() const override { return inner().identity(); }
  std::uint64_t last_position() const override { return inner().last_position(); }
  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    return inner().position_of(topic, sequence);
  }
  actors::Replay replay(const actors::ReplayQuery& query) const override { return inner().replay(query); }
  std::vector<OutboxEvent> last_events(std::size_t each) const override { return inner().last_events(each); }

 private:
  const Outbox& inner() const { return *disk_.kept_; }

  Disk& disk_;
};

Disk::Disk(World& world, Host& host, Options options)
    : world_(world), host_(host), options_(options), kept_(actors::make_memory_outbox()) {}

std::unique_ptr<Outbox> Disk::open() {
  return std::make_unique<DiskOutbox>(*this);
}

void Disk::put(const Write& write) {
  // As from a disk that is gone: whoever writes must not take it for done, or would go on for ever.
  if (!host_.up || host_.dying) throw actors::OutboxError("the host is dead");
  // A write that a crash comes into is there as a whole or not at all: that is what the store's log is for.
  if (!host_.does_something() && world_.random.chance(0.5)) return;
  world_.note(Kind::write, host_.id, -1, kept_->last_position());
  write(*kept_);
  if (options_.unsynced > 0) writes_.push_back(write);
}

void Disk::replace() {
  if (!host_.does_something()) return;
  kept_ = actors::make_memory_outbox();
  writes_.clear();
}

void Disk::crash() {
  if (options_.unsynced == 0) return;
  writes_.resize(writes_.size() - std::min(writes_.size(), options_.unsynced));
  kept_ = actors::make_memory_outbox();
  for (const Write& write : writes_) write(*kept_);
}

}  // namespace vigil::fleet::sim
