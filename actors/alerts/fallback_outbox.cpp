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

constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();
constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

/// Tells what the process before this one owes there.
void settle(Outbox& outbox, const base::Clock& clock) {
  const std::map<std::string, std::string> notes = outbox.notes();
  std::vector<WaitingEvent> owed;
  if (auto unsaid = unsaid_news(notes, clock.wall(), outbox)) owed.push_back(std::move(*unsaid));
  for (WaitingEvent& each :
       unfinished_events(outbox.last_events(kLookBack), notes, {}, clock.wall(), outbox.mark_of_loss()))
    owed.push_back(std::move(each));
  if (owed.empty()) return;
  EventQueue queue({.most = kEverything, .batch_events = kEverything, .batch_bytes = kEverything});
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
    all.max_events = all.max_bytes = all.max_scanned = kEverything;
    return {now_->replay(all).events.size(), why_in_memory_};
  }

  std::uint64_t last_sequence(const std::string& topic) const override { return now_->last_sequence(topic); }

  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    return now_->append(events, notes);
  }

  std::uint64_t continue_from(std::span<const Continuation> topics, std::span<const OutboxEvent> events,
                              std::span<const OutboxNote> notes) override {
    const std::uint64_t first = now_->continue_from(topics, events, notes);
    if (in_memory_)
      for (const Continuation& topic : topics) note_jump(topic);
    return first;
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
      jumps_.clear();
      attempted_.clear();
      kept_.reset();
      metrics_.outbox_in_memory(false);
      tell({"outbox_disk",
            "the outbox is on the disk again; events that were kept in memory: " + std::to_string(moved)});
    } catch (const OutboxError& error) {
      logger_.debug("{}", error.what());
      why_in_memory_ = error.what();
    }
  }

  /// By which a disk tells that it has kept what was moved, until it is the one that counts.
  static constexpr const char* kMoved = "moved";

  struct Attempt {
    /// The last event of it, in memory.
    std::uint64_t position = 0;
    /// From 1 on.
    std::uint64_t number = 0;
  };

  /// What goes to the disk at once.
  struct Moving {
    std::vector<Continuation> topics;
    std::vector<OutboxEvent> events;
    /// Places of those that were published, among the events.
    std::vector<std::uint64_t> published;
    /// The last sequence of each topic.
    std::map<std::string, std::uint64_t> last;
  };

  /// Returns how many events were moved. If it throws, they are moved with the next attempt, unless this one
  /// has kept them.
  std::size_t move_to(Outbox& disk) {
    kept_ = kept_of(disk);
    // What is open there after an attempt that was kept is this process's.
    if (!kept_ && !options_.given_numbers) settle(disk, clock_);
    Moving moving = gather(disk);
    if (options_.given_numbers) end_with_jumps(moving);
    std::vector<OutboxNote> notes;
    for (auto& [key, value] : now_->notes()) notes.push_back({key, value});
    attempted_.push_back(now_->last_position());
    notes.push_back({kMoved, moved_text(attempted_.size())});
    const std::uint64_t begin = moving.topics.empty()
                                    ? disk.append(moving.events, notes)
                                    : disk.continue_from(moving.topics, moving.events, notes);
    // What the disk does not take any more is published again: all of it is there.
    for (std::uint64_t& position : moving.published) position += begin;
    try {
      disk.acknowledge(moving.published);
    } catch (const OutboxError& error) {
      logger_.debug("{}", error.what());
    }
    try {
      disk.append({}, {{{kMoved, std::nullopt}}});
    } catch (const OutboxError& error) {
      logger_.debug("{}", error.what());
    }
    return moving.events.size();
  }

  /// Which attempt a disk has kept last, whatever it said of it.
  std::optional<Attempt> kept_of(const Outbox& disk) const {
    const auto notes = disk.notes();
    const auto moved = notes.find(kMoved);
    if (moved == notes.end()) return std::nullopt;
    for (std::uint64_t number = attempted_.size(); number > 0; --number)
      if (moved->second == moved_text(number)) return Attempt{attempted_[number - 1], number};
    return std::nullopt;
  }

  std::string moved_text(std::uint64_t attempt) const {
    return now_->identity() + ' ' + std::to_string(attempt);
  }

  Moving gather(const Outbox& disk) const {
    Moving moving;
    std::set<std::uint64_t> pending;
    for (const OutboxEvent& event : now_->unacknowledged(kEverything)) pending.insert(event.position);
    ReplayQuery all;
    all.after = kept_ ? kept_->position : 0;
    all.topics = {""};
    all.max_events = all.max_bytes = all.max_scanned = kEverything;
    for (OutboxEvent& event : now_->replay(all).events) {
      const bool is_last = event.sequence == now_->last_sequence(event.topic);
      if (!is_last && !pending.contains(event.position)) moving.published.push_back(moving.events.size());
      const auto [last, first] = moving.last.try_emplace(event.topic, 0);
      if (options_.given_numbers) {
        // What is forgotten in memory leaves a gap as well as a jump does.
        if (first || event.sequence != last->second + 1)
          moving.topics.push_back({event.topic, event.sequence - 1, first ? stays(event.topic) : kNoEnd});
        last->second = event.sequence;
      } else {
        if (first) last->second = disk.last_sequence(event.topic);
        if (const std::uint64_t sequence = ++last->second; sequence != event.sequence) {
          event.sequence = sequence;
          event.body = with_sequence(event.body, sequence);
        }
      }
      moving.events.push_back(std::move(event));
    }
    return moving;
  }

  /// Topics that went on elsewhere, and have no event there yet.
  void end_with_jumps(Moving& moving) const {
    for (const auto& [jump, stays_there] : jumps_) {
      if (jump.second < attempts_kept()) continue;
      const std::string& topic = jump.first;
      const std::uint64_t end = now_->last_sequence(topic);
      const auto [last, first] = moving.last.try_emplace(topic, end);
      if (!first && last->second == end) continue;
      moving.topics.push_back({topic, end, first ? stays(topic) : kNoEnd});
      last->second = end;
    }
  }

  void note_jump(const Continuation& topic) {
    const std::uint64_t stays_there = std::min(topic.last, topic.stays);
    const auto [jump, is_new] = jumps_.try_emplace({topic.topic, attempted_.size()}, stays_there);
    if (!is_new) jump->second = std::min(jump->second, stays_there);
  }

  /// Up to where the disk's own events of a topic stay, by all that was said since what it has was kept.
  std::uint64_t stays(const std::string& topic) const {
    // In memory it began at 1.
    std::uint64_t least = kept_ ? kNoEnd : 0;
    bool jumped = false;
    for (auto jump = jumps_.lower_bound({topic, attempts_kept()});
         jump != jumps_.end() && jump->first.first == topic; ++jump) {
      least = jumped ? std::min(least, jump->second) : jump->second;
      jumped = true;
    }
    return least;
  }

  /// What was said before the attempt with this number is on the disk.
  std::uint64_t attempts_kept() const { return kept_ ? kept_->number : 0; }

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

  FallbackOptions options_;
  config::RetentionClock& ages_;
  const base::Clock& clock_;
  Metrics& metrics_;
  spdlog::logger& logger_;
  std::unique_ptr<Outbox> now_;
  /// Of each attempt, the last event in memory; and the last one that was kept.
  std::vector<std::uint64_t> attempted_;
  std::optional<Attempt> kept_;
  /// Of topics that went on elsewhere in memory, after so many attempts: up to where they stayed.
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> jumps_;
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
