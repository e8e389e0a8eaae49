#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "actors/alerts/outbox_database.h"
#include "actors/alerts/outbox_parts.h"
#include "actors/alerts/outbox_records.h"
#include "engine/kv/database/rocksdb_parts.h"

namespace vigil::actors {
namespace {

class RocksdbOutbox final : public Outbox {
 public:
  using Outbox::acknowledge;
  using Outbox::append;
  using Outbox::continue_from;

  RocksdbOutbox(const std::filesystem::path& folder, config::RetentionClock& ages, std::uintmax_t keep_free)
      : database_(folder, ages, keep_free), identity_(database_.identity()) {}

  void refresh() override { database_.make_writable(); }

  std::uint64_t last_sequence(const std::string& topic) const override {
    database_.make_readable(/*patient=*/false);
    return sequence_of(topic);
  }

  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    return continue_from({}, events, notes);
  }

  std::uint64_t continue_from(std::span<const Continuation> topics, std::span<const OutboxEvent> events,
                              std::span<const OutboxNote> notes) override {
    if (topics.empty() && events.empty() && notes.empty()) return 0;
    database_.check_space();
    const std::uint64_t generation = database_.generation();
    database_.make_writable();
    follow_generation();
    const auto sequences = count(events, topics, generation != database_.generation());
    const base::Clock::WallTime stamp = database_.ages().now();
    const std::uint64_t first = database_.next_position();
    std::uint64_t position = first;
    rocksdb::WriteBatch batch;
    const std::vector<std::uint64_t> forgotten = forget_behind(topics, batch);
    for (const OutboxEvent& event : events) {
      database_.check(batch.Put(position_key('e', position), encode_event(event, stamp)));
      database_.check(batch.Put(position_key('p', position), ""));
      database_.check(batch.Put(index_key(event.topic, event.sequence), encode_number(position)));
      ++position;
    }
    for (const auto& [topic, sequence] : sequences)
      database_.check(batch.Put(topic_key(topic), encode_number(sequence)));
    for (const OutboxNote& note : notes) {
      database_.check(note.value ? batch.Put(note_key(note.key), *note.value)
                                 : batch.Delete(note_key(note.key)));
    }
    database_.check(batch.Put("n", encode_number(position)));
    // Before they go, so that nobody misses them.
    if (!forgotten.empty()) database_.settle(*std::max_element(forgotten.begin(), forgotten.end()));
    database_.keep(batch, position - 1);
    // Their sequences may be others' now.
    for (const std::uint64_t each : forgotten) {
      acknowledged_.erase(each);
      passed_over_.erase(each);
    }
    return events.empty() ? 0 : first;
  }

  std::map<std::string, std::string> notes() const override {
    database_.make_readable(/*patient=*/false);
    std::map<std::string, std::string> result;
    const auto entry = database_.entries();
    const std::string kind = note_key("");
    for (entry->Seek(kind); entry->Valid() && entry->key().starts_with(kind); entry->Next())
      result.emplace(kv::view_of(entry->key()).substr(kind.size()), kv::view_of(entry->value()));
    database_.check(entry->status());
    return result;
  }

  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return unacknowledged_after(0, limit);
  }

  std::vector<OutboxEvent> unacknowledged_after(std::uint64_t position, std::size_t limit) const override {
    database_.make_readable(/*patient=*/false);
    follow_generation();
    std::vector<OutboxEvent> events;
    const auto entry = database_.entries();
    const std::uint64_t begin =
        position >= none_after_ ? std::max(first_pending_, position + 1) : position + 1;
    for (entry->Seek(position_key('p', begin)); entry->Valid() && events.size() < limit; entry->Next()) {
      if (!entry->key().starts_with("p")) break;
      const std::uint64_t each = number_in(decode_position_key(kv::view_of(entry->key())));
      if (!acknowledged_.contains(each)) events.push_back(event_at(each));
    }
    database_.check(entry->status());
    const std::uint64_t first = events.empty() ? database_.next_position() : events.front().position;
    // What spares more is worth remembering.
    if (acknowledged_.empty() && limit > 0 && first > position &&
        first - position >= first_pending_ - none_after_) {
      none_after_ = position;
      first_pending_ = first;
    }
    return events;
  }

  void acknowledge(std::span<const std::uint64_t> positions) override {
    acknowledged_.insert(positions.begin(), positions.end());
    database_.make_writable();
    follow_generation();
    rocksdb::WriteBatch batch;
    for (const std::uint64_t each : acknowledged_) database_.check(batch.Delete(position_key('p', each)));
    database_.write(batch);
    while (acknowledged_.contains(first_pending_)) ++first_pending_;
    acknowledged_.clear();
  }

  std::size_t prune(base::Duration older_than) override {
    database_.make_writable();
    follow_generation();
    const base::Clock::WallTime before = database_.ages().now() - older_than;
    try {
      return prune_before(before);
    } catch (const OutboxError&) {
      // What was passed is still there.
      front_ = 0;
      passed_over_.clear();
      throw;
    }
  }

  const std::string& identity() const override { return database_.identity(); }

  std::string mark_of_loss() const override {
    return database_.rebuilt() ? database_.identity() : std::string();
  }

  std::vector<OutboxNotice> take_notices() override { return database_.take_notices(); }

  std::uint64_t last_position() const override { return database_.next_position() - 1; }

  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    database_.make_readable(/*patient=*/true);
    const auto entry = database_.entries();
    const std::string key = index_key(topic, sequence);
    entry->Seek(key);
    database_.check(entry->status());
    // Only the sequence, the last 8 bytes, may differ.
    const rocksdb::Slice name(key.data(), key.size() - 8);
    if (!entry->Valid() || entry->key().size() != key.size() || !entry->key().starts_with(name)) {
      return std::nullopt;
    }
    return number_in(decode_number(kv::view_of(entry->value())));
  }

  Replay replay(const ReplayQuery& query) const override {
    database_.make_readable(/*patient=*/true);
    Replay result{{}, query.after, false};
    std::size_t scanned = 0;
    std::size_t bytes = 0;
    const auto entry = database_.entries();
    entry->Seek(position_key('e', query.after));
    if (entry->Valid() && entry->key() == position_key('e', query.after)) entry->Next();
    for (; entry->Valid() && entry->key().starts_with("e"); entry->Next()) {
      const std::uint64_t position = number_in(decode_position_key(kv::view_of(entry->key())));
      const OutboxEventHead head = head_of(entry->value());
      std::optional<OutboxEvent> event;
      if (is_wanted(query, head.topic, head.time)) event = event_in(position, entry->value());
      if (scanned++ == query.max_scanned || (event && is_full(query, result.events.size(), bytes, *event))) {
        result.more = true;
        return result;
      }
      if (event) {
        bytes += size_of(*event);
        result.events.push_back(std::move(*event));
      }
      result.cursor = position;
    }
    database_.check(entry->status());
    result.cursor = std::max(result.cursor, last_position());
    return result;
  }

  std::vector<OutboxEvent> last_events(std::size_t each) const override {
    database_.make_readable(/*patient=*/false);
    std::vector<OutboxEvent> events;
    const auto entry = database_.entries();
    for (entry->Seek("s"); entry->Valid() && entry->key().starts_with("s"); entry->Next()) {
      const std::string topic(entry->key().data() + 1, entry->key().size() - 1);
      const std::uint64_t last = number_in(decode_number(kv::view_of(entry->value())));
      for (std::uint64_t sequence = last - std::min<std::uint64_t>(last, each) + 1; sequence <= last;
           ++sequence)
        if (const auto position = database_.get(index_key(topic, sequence)))
          events.push_back(event_at(number_in(decode_number(*position))));
    }
    database_.check(entry->status());
    return events;
  }

 private:
  /// Of an event: where it is on its topic, and since when it is kept.
  struct Place {
    std::string topic;
    std::uint64_t sequence = 0;
    base::Clock::WallTime stamp;
  };
  struct Pruning {
    rocksdb::WriteBatch batch;
    std::size_t count = 0;

    bool full() const { return count == kPruneAtOnce; }
    void forget(std::uint64_t position, const std::string& topic, std::uint64_t sequence) {
      // Of a batch in memory: neither fails.
      batch.Delete(position_key('e', position)).PermitUncheckedError();
      batch.Delete(index_key(topic, sequence)).PermitUncheckedError();
      ++count;
    }
  };

  /// `reopened`: the sequences may have been counted before, when a write that had failed was not there yet.
  std::map<std::string, std::uint64_t> count(std::span<const OutboxEvent> events,
                                             std::span<const Continuation> topics, bool reopened) const {
    try {
      return sequences_after(*this, events, topics);
    } catch (const std::invalid_argument&) {
      if (!reopened) throw;
      throw OutboxError("outbox " + database_.folder().string() +
                        ": was opened again, and sequences have to be counted again");
    }
  }

  /// Returns their positions.
  std::vector<std::uint64_t> forget_behind(std::span<const Continuation> topics, rocksdb::WriteBatch& batch) {
    std::vector<std::uint64_t> positions;
    if (topics.empty()) return positions;
    const auto entry = database_.entries();
    for (const Continuation& topic : topics) {
      const std::uint64_t stays = std::min(topic.last, topic.stays);
      if (stays == std::numeric_limits<std::uint64_t>::max()) continue;
      const std::string key = index_key(topic.topic, stays + 1);
      // Only the sequence, the last 8 bytes, may differ.
      const rocksdb::Slice name(key.data(), key.size() - 8);
      for (entry->Seek(key); entry->Valid() && entry->key().starts_with(name); entry->Next()) {
        if (entry->key().size() != key.size()) continue;
        const std::uint64_t position = number_in(decode_number(kv::view_of(entry->value())));
        database_.check(batch.Delete(position_key('e', position)));
        database_.check(batch.Delete(position_key('p', position)));
        database_.check(batch.Delete(entry->key()));
        positions.push_back(position);
      }
      database_.check(entry->status());
    }
    return positions;
  }

  std::size_t prune_before(base::Clock::WallTime before) {
    Pruning pruning;
    for (auto entry = passed_over_.begin(); entry != passed_over_.end() && !pruning.full();) {
      const auto& [position, place] = *entry;
      const bool goes = place.stamp < before && may_go(position, place.topic, place.sequence);
      if (goes) pruning.forget(position, place.topic, place.sequence);
      entry = goes ? passed_over_.erase(entry) : std::next(entry);
    }
    const auto entry = database_.entries(/*fill_cache=*/false);
    for (entry->Seek(position_key('e', front_)); !pruning.full() && entry->Valid(); entry->Next()) {
      if (!entry->key().starts_with("e")) break;
      const std::uint64_t position = number_in(decode_position_key(kv::view_of(entry->key())));
      const OutboxEventHead head = head_of(entry->value());
      const base::Clock::WallTime stamp = head.stamp.value_or(std::min(head.time, database_.taken_over()));
      if (stamp >= before) break;
      front_ = position + 1;
      const std::string topic(head.topic);
      if (may_go(position, topic, head.sequence)) {
        pruning.forget(position, topic, head.sequence);
      } else {
        passed_over_.emplace(position, Place{topic, head.sequence, stamp});
      }
    }
    database_.check(entry->status());
    // Before they go, so that nobody misses them; and, without any, for the time.
    database_.settle(pruning.count > 0 ? front_ - 1 : 0);
    if (pruning.count > 0) database_.write(pruning.batch);
    return pruning.count;
  }

  bool may_go(std::uint64_t position, const std::string& topic, std::uint64_t sequence) const {
    return sequence != sequence_of(topic) && !database_.get(position_key('p', position));
  }

  /// What is remembered of the entries is of those that are there now.
  void follow_generation() const {
    if (std::exchange(generation_, database_.generation()) == database_.generation()) return;
    // The positions of another one are other events'.
    if (std::exchange(identity_, database_.identity()) != database_.identity()) acknowledged_.clear();
    none_after_ = first_pending_ = 0;
    front_ = 0;
    passed_over_.clear();
  }

  std::uint64_t sequence_of(const std::string& topic) const {
    const auto sequence = database_.get(topic_key(topic));
    return sequence ? number_in(decode_number(*sequence)) : 0;
  }

  OutboxEvent event_at(std::uint64_t position) const {
    const auto bytes = database_.get(position_key('e', position));
    if (!bytes) database_.fail_damaged("event " + std::to_string(position) + " is missing: it");
    return event_in(position, *bytes);
  }

  OutboxEvent event_in(std::uint64_t position, const rocksdb::Slice& bytes) const {
    auto event = decode_event(position, kv::view_of(bytes));
    if (!event) database_.fail_damaged("event " + std::to_string(position));
    return std::move(*event);
  }

  OutboxEventHead head_of(const rocksdb::Slice& bytes) const {
    const auto head = decode_event_head(kv::view_of(bytes));
    if (!head) database_.fail_damaged("an event");
    return *head;
  }

  std::uint64_t number_in(std::optional<std::uint64_t> number) const {
    if (!number) database_.fail_damaged("a number");
    return *number;
  }

  /// Reading may open it again.
  mutable OutboxDatabase database_;
  /// Of the database that what follows was learnt of.
  mutable std::string identity_;
  mutable std::uint64_t generation_ = 0;
  /// None of the events behind the one and before the other waits for an acknowledgement: it spares the
  /// search what was deleted there.
  mutable std::uint64_t none_after_ = 0;
  mutable std::uint64_t first_pending_ = 0;
  /// Acknowledged, but not written yet.
  mutable std::set<std::uint64_t> acknowledged_;
  /// Every event before it is gone, but for those that were passed over, by position.
  mutable std::uint64_t front_ = 0;
  mutable std::map<std::uint64_t, Place> passed_over_;
};

}  // namespace

std::unique_ptr<Outbox> open_rocksdb_outbox(const std::filesystem::path& folder, config::RetentionClock& ages,
                                            std::uintmax_t keep_free) {
  return std::make_unique<RocksdbOutbox>(folder, ages, keep_free);
}

}  // namespace vigil::actors
