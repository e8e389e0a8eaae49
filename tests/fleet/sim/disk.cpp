#include "tests/fleet/sim/disk.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
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
  void refresh() override {
    if (failed_ && disk_.fails()) disk_.refuse();
    failed_ = false;
  }
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner().last_sequence(topic);
  }
  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    return put({{}, {events.begin(), events.end()}, {notes.begin(), notes.end()}, false});
  }
  std::uint64_t continue_from(std::span<const actors::Continuation> topics,
                              std::span<const OutboxEvent> events,
                              std::span<const OutboxNote> notes) override {
    return put(
        {{topics.begin(), topics.end()}, {events.begin(), events.end()}, {notes.begin(), notes.end()}, true});
  }
  std::vector<OutboxEvent> unacknowledged_after(std::uint64_t position, std::size_t limit) const override {
    return without_acknowledged(inner().unacknowledged_after(position, more(limit)), limit);
  }
  std::map<std::string, std::string> notes() const override { return inner().notes(); }
  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return without_acknowledged(inner().unacknowledged(more(limit)), limit);
  }
  void acknowledge(std::span<const std::uint64_t> positions) override {
    // It holds for this one even if it fails; the next one knows nothing of it then.
    acknowledged_.insert(positions.begin(), positions.end());
    tell_disk();
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

  std::uint64_t put(Disk::Write write) {
    // Nobody uses one that has failed before it was opened again.
    if (failed_) disk_.refuse();
    failed_ = true;
    if (!disk_.fails()) tell_disk();
    const std::uint64_t first = disk_.put(std::move(write));
    failed_ = false;
    return first;
  }

  void tell_disk() {
    if (acknowledged_.empty()) return;
    const std::vector<std::uint64_t> positions(acknowledged_.begin(), acknowledged_.end());
    disk_.acknowledge(positions);
    acknowledged_.clear();
  }

  std::size_t more(std::size_t limit) const {
    return limit + std::min(disk_.acknowledged_.size() + acknowledged_.size(),
                            std::numeric_limits<std::size_t>::max() - limit);
  }
  std::vector<OutboxEvent> without_acknowledged(std::vector<OutboxEvent> events, std::size_t limit) const {
    std::erase_if(events, [&](const OutboxEvent& event) {
      return disk_.acknowledged_.contains(event.position) || acknowledged_.contains(event.position);
    });
    if (events.size() > limit) events.resize(limit);
    return events;
  }

  Disk& disk_;
  bool failed_ = false;
  /// That the disk has not taken.
  std::set<std::uint64_t> acknowledged_;
};

Disk::Disk(World& world, Host& host, Options options)
    : world_(world), host_(host), options_(options), kept_(actors::make_memory_outbox()) {}

std::unique_ptr<Outbox> Disk::open() {
  return std::make_unique<DiskOutbox>(*this);
}

void Disk::refuse() const {
  throw actors::OutboxError("the disk of " + host_.name + " fails");
}

std::uint64_t Disk::Write::to(Outbox& outbox) const {
  return continues ? outbox.continue_from(topics, events, notes) : outbox.append(events, notes);
}

std::uint64_t Disk::put(Write write) {
  // As from a disk that is gone: whoever writes must not take it for done, or would go on for ever.
  if (!host_.up || host_.dying) throw actors::OutboxError("the host is dead");
  // A write that a crash comes into, or a fault, is there as a whole or not at all: that is what the store's
  // log is for.
  const bool is_whole = host_.does(Point::write) && !fails_;
  if (fails_ && options_.tears && !write.events.empty()) {
    write.continues = true;
    write.topics.push_back({write.events.front().topic, write.events.front().sequence});
    write.events.erase(write.events.begin());
    return keep(write);
  }
  const bool is_kept = is_whole || world_.random.chance(0.5);
  const std::uint64_t first = is_kept ? keep(write) : 0;
  // Whoever writes goes on, and is heard by nobody any more.
  if (is_kept) host_.does(Point::written);
  if (fails_) refuse();
  return first;
}

std::uint64_t Disk::keep(const Write& write) {
  world_.note(Kind::write, host_.id, -1, kept_->last_position());
  const std::vector<std::uint64_t> positions(acknowledged_.begin(), acknowledged_.end());
  kept_->acknowledge(positions);
  acknowledged_.clear();
  const std::uint64_t first = write.to(*kept_);
  if (options_.unsynced > 0) writes_.push_back(write);
  return first;
}

void Disk::acknowledge(std::span<const std::uint64_t> positions) {
  if (!host_.up || host_.dying) throw actors::OutboxError("the host is dead");
  if (fails_) refuse();
  if (host_.does(Point::acknowledge)) acknowledged_.insert(positions.begin(), positions.end());
}

void Disk::replace() {
  if (!host_.does(Point::replace)) return;
  kept_ = actors::make_memory_outbox();
  acknowledged_.clear();
  writes_.clear();
}

void Disk::crash() {
  if (host_.loses_power) acknowledged_.clear();
  if (options_.unsynced == 0) return;
  writes_.resize(writes_.size() - std::min(writes_.size(), options_.unsynced));
  acknowledged_.clear();
  kept_ = actors::make_memory_outbox();
  for (const Write& write : writes_) write.to(*kept_);
}

}  // namespace vigil::fleet::sim
