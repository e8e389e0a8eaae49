// Outboxes that count, fail or die on the way to another one.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/outbox.h"

namespace vigil::actors::testing {

/// The process is gone: no code of it catches this.
struct Killed {};

/// Passes everything on. What it passes on to has to outlive it.
class WatchedOutbox final : public Outbox {
 public:
  explicit WatchedOutbox(Outbox& inner) : inner_(&inner) {}

  /// Another one takes its place.
  void replace(Outbox& inner) { inner_ = &inner; }

  using Outbox::acknowledge;
  using Outbox::append;
  using Outbox::continue_from;
  void refresh() override {
    inner_->refresh();
    if (on_refresh) on_refresh();
  }
  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    step();
    appends.emplace_back(events.begin(), events.end());
    if (fails) throw OutboxError("outbox: broken");
    const std::uint64_t first = inner_->append(events, notes);
    if (fails_afterwards) throw OutboxError("outbox: broken, after it was kept");
    step();
    return first;
  }
  std::uint64_t continue_from(std::span<const Continuation> topics, std::span<const OutboxEvent> events,
                              std::span<const OutboxNote> notes) override {
    step();
    if (fails) throw OutboxError("outbox: broken");
    const std::uint64_t first = inner_->continue_from(topics, events, notes);
    if (fails_afterwards) throw OutboxError("outbox: broken, after it was kept");
    step();
    return first;
  }
  std::vector<OutboxEvent> unacknowledged_after(std::uint64_t position, std::size_t limit) const override {
    return inner_->unacknowledged_after(position, limit);
  }
  std::map<std::string, std::string> notes() const override { return inner_->notes(); }
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner_->last_sequence(topic);
  }
  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    step();
    return inner_->unacknowledged(limit);
  }
  void acknowledge(std::span<const std::uint64_t> positions) override {
    step();
    if (fails_to_acknowledge) throw OutboxError("outbox: broken");
    inner_->acknowledge(positions);
    step();
  }
  std::size_t prune(base::Duration older_than) override { return inner_->prune(older_than); }
  const std::string& identity() const override { return inner_->identity(); }
  std::uint64_t last_position() const override { return inner_->last_position(); }
  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    return inner_->position_of(topic, sequence);
  }
  Replay replay(const ReplayQuery& query) const override { return inner_->replay(query); }
  std::vector<OutboxEvent> last_events(std::size_t each) const override { return inner_->last_events(each); }
  std::vector<OutboxNotice> take_notices() override { return std::exchange(notices, {}); }

  /// What was appended, tried or kept.
  std::vector<std::vector<OutboxEvent>> appends;
  std::vector<OutboxNotice> notices;
  std::function<void()> on_refresh;
  bool fails = false;
  bool fails_afterwards = false;
  bool fails_to_acknowledge = false;
  /// Steps until the process is killed; a step is between two calls, or between a call and its return.
  mutable std::size_t steps_left = std::numeric_limits<std::size_t>::max();

 private:
  void step() const {
    if (steps_left-- == 0) throw Killed{};
  }

  Outbox* inner_;
};

/// All that an outbox has, in the order of positions.
inline std::vector<OutboxEvent> all_events(const Outbox& outbox) {
  std::vector<OutboxEvent> events;
  ReplayQuery query;
  query.topics = {""};
  for (bool more = true; more;) {
    Replay page = outbox.replay(query);
    for (OutboxEvent& event : page.events) events.push_back(std::move(event));
    query.after = page.cursor;
    more = page.more;
  }
  return events;
}

}  // namespace vigil::actors::testing
