#include "actors/alerts/fallback_outbox.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "actors/alerts/closing.h"
#include "actors/alerts/event_queue.h"
#include "actors/alerts/open_episodes.h"
#include "actors/alerts/process_news.h"

namespace vigil::actors {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

/// Tells what the process before this one owes there.
void settle(Outbox& outbox, const base::Clock& clock) {
  const std::map<std::string, std::string> notes = outbox.notes();
  std::vector<WaitingEvent> owed;
  if (auto unsaid = unsaid_news(notes, clock.wall(), outbox)) owed.push_back(std::move(*unsaid));
  for (WaitingEvent& each :
       unfinished_events(outbox.last_events(kLookBack), notes, {}, clock.wall(), outbox.mark_of_loss()))
    owed.push_back(std::move(each));
  if (owed.empty()) return;
  EventQueue queue({.most = kAll, .batch_events = kAll, .batch_bytes = kAll});
  queue.push_front(std::move(owed));
  const EventQueue::Batch batch =
      queue.next(clock.now(), [&outbox](const std::string& topic) { return outbox.last_sequence(topic); });
  outbox.append(batch.events, batch.notes);
}

class FallbackOutbox final : public Outbox {
 public:
  using Outbox::acknowledge;
  using Outbox::append;
  using Outbox::continue_from;

  FallbackOutbox(FallbackOptions options, config::RetentionClock& ages, const base::Clock& clock,
                 Metrics& metrics, spdlog::logger& logger)
      : options_(std::move(options)), ages_(ages), clock_(clock), metrics_(metrics), logger_(logger) {
    try {
      now_ = options_.open();
    } catch (const OutboxLocked&) {
      throw;
    } catch (const OutboxError& error) {
      now_ = make_memory_outbox(&ages_, options_.memory_bytes);
      wait_for_disk();
      why_in_memory_ = error.what();
      tell({"outbox_memory", std::string(error.what()) + "; events are kept in memory until it can be used"});
    }
    metrics_.outbox_in_memory(in_memory_);
    hear();
  }

  void refresh() override {
    try_disk();
    hear();
    now_->refresh();
  }

  Passing finish() override {
    retry_at_ = clock_.now();
    refresh();
    if (!in_memory_) return {};
    ReplayQuery all;
    all.topics = {""};
    all.max_events = all.max_bytes = all.max_scanned = kAll;
    return {now_->replay(all).events.size(), why_in_memory_};
  }

  std::uint64_t last_sequence(const std::string& topic) const override { return now_->last_sequence(topic); }

  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    return now_->append(events, notes);
  }

  std::uint64_t continue_from(std::span<const Continuation> topics, std::span<const OutboxEvent> events,
                              std::span<const OutboxNote> notes) override {
    return now_->continue_from(topics, events, notes);
  }

  std::map<std::string, std::string> notes() const override { return now_->notes(); }

  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return now_->unacknowledged(limit);
  }

  std::vector<OutboxEvent> unacknowledged_after(std::uint64_t position, std::size_t limit) const override {
    return now_->unacknowledged_after(position, limit);
  }

  void acknowledge(std::span<const std::uint64_t> positions) override { now_->acknowledge(positions); }

  std::size_t prune(base::Duration older_than) override { return now_->prune(older_than); }

  const std::string& identity() const override { return now_->identity(); }

  std::string mark_of_loss() const override { return now_->mark_of_loss(); }

  std::vector<OutboxNotice> take_notices() override {
    hear();
    return std::exchange(notices_, {});
  }

  std::uint64_t last_position() const override { return now_->last_position(); }

  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    return now_->position_of(topic, sequence);
  }

  Replay replay(const ReplayQuery& query) const override { return now_->replay(query); }

  std::vector<OutboxEvent> last_events(std::size_t each) const override { return now_->last_events(each); }

 private:
  void wait_for_disk() {
    in_memory_ = true;
    retry_at_ = clock_.now() + options_.retry;
  }

  void try_disk() {
    if (!in_memory_ || clock_.now() < retry_at_) return;
    wait_for_disk();
    try {
      std::unique_ptr<Outbox> disk = options_.open();
      const std::size_t moved = move_to(*disk);
      now_ = std::move(disk);
      in_memory_ = false;
      metrics_.outbox_in_memory(false);
      tell({"outbox_disk",
            "the outbox is on the disk again; events that were kept in memory: " + std::to_string(moved)});
    } catch (const OutboxError& error) {
      logger_.debug("{}", error.what());
      why_in_memory_ = error.what();
    }
  }

  /// Returns how many events were moved. If it throws, they are moved with the next attempt, unless this one
  /// has kept them.
  std::size_t move_to(Outbox& disk) {
    if (attempt_ && !has_event(disk, attempt_->last)) attempt_.reset();
    // What is open there after an attempt that was kept is this process's.
    if (!attempt_ && !options_.given_numbers) settle(disk, clock_);
    std::map<std::string, std::uint64_t> sequences;
    std::vector<Continuation> topics;
    std::set<std::uint64_t> pending;
    for (const OutboxEvent& event : now_->unacknowledged(kAll)) pending.insert(event.position);
    std::vector<OutboxEvent> batch;
    /// Places in the batch.
    std::vector<std::uint64_t> published;
    ReplayQuery all;
    all.after = attempt_ ? attempt_->position : 0;
    all.topics = {""};
    all.max_events = all.max_bytes = all.max_scanned = kAll;
    for (OutboxEvent& event : now_->replay(all).events) {
      const auto [last, first] = sequences.try_emplace(event.topic, 0);
      if (first && options_.given_numbers) topics.push_back({event.topic, event.sequence - 1});
      if (first) last->second = options_.given_numbers ? event.sequence - 1 : disk.last_sequence(event.topic);
      const bool is_last = event.sequence == now_->last_sequence(event.topic);
      if (!is_last && !pending.contains(event.position)) published.push_back(batch.size());
      if (const std::uint64_t sequence = ++last->second; sequence != event.sequence) {
        event.sequence = sequence;
        event.body = with_sequence(event.body, sequence);
      }
      batch.push_back(std::move(event));
    }
    std::vector<OutboxNote> notes;
    for (auto& [key, value] : now_->notes()) notes.push_back({key, value});
    if (!batch.empty()) attempt_ = Attempt{batch.back(), now_->last_position()};
    const std::uint64_t begin =
        topics.empty() ? disk.append(batch, notes) : disk.continue_from(topics, batch, notes);
    // What the disk does not take any more is published again: all of it is there.
    for (std::uint64_t& position : published) position += begin;
    try {
      disk.acknowledge(published);
    } catch (const OutboxError& error) {
      logger_.debug("{}", error.what());
    }
    return batch.size();
  }

  void hear() {
    for (OutboxNotice& notice : now_->take_notices()) tell(std::move(notice));
    if (auto news = ages_.take_news()) tell({"clock", std::move(*news)});
  }

  void tell(OutboxNotice notice) {
    logger_.warn("{}", notice.text);
    metrics_.outbox_noticed(notice.reason);
    if (notices_.size() < kNoticesKept) notices_.push_back(std::move(notice));
  }

  // Of an owner that takes none.
  static constexpr std::size_t kNoticesKept = 64;

  /// What was moved last, if that was kept: who cannot say so may have kept it all the same.
  struct Attempt {
    OutboxEvent last;
    /// Of it, in memory.
    std::uint64_t position = 0;
  };

  FallbackOptions options_;
  config::RetentionClock& ages_;
  const base::Clock& clock_;
  Metrics& metrics_;
  spdlog::logger& logger_;
  std::unique_ptr<Outbox> now_;
  std::optional<Attempt> attempt_;
  bool in_memory_ = false;
  std::string why_in_memory_;
  base::Clock::TimePoint retry_at_{};
  std::vector<OutboxNotice> notices_;
};

}  // namespace

std::unique_ptr<Outbox> make_fallback_outbox(FallbackOptions options, config::RetentionClock& ages,
                                             const base::Clock& clock, Metrics& metrics,
                                             spdlog::logger& logger) {
  return std::make_unique<FallbackOutbox>(std::move(options), ages, clock, metrics, logger);
}

}  // namespace vigil::actors
