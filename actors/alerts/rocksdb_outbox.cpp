// Keys: "e" + position -> event; "p" + position -> "" while it is not acknowledged; "s" + topic -> last
// sequence; "t" + topic + NUL + sequence -> position; "n" -> next position; "i" -> identity; "v" -> version
// of this layout. Numbers in keys are big-endian, so that the store's order is theirs.
#include <algorithm>
#include <cstdarg>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "actors/alerts/outbox_parts.h"

namespace vigil::actors {
namespace {

constexpr const char* kVersion = "2";
// The same without "t" and "i".
constexpr const char* kVersionWithoutIndex = "1";

void put(std::string& bytes, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
}

std::string encode(std::uint64_t value) {
  std::string bytes;
  put(bytes, value);
  return bytes;
}

std::string key_of(char kind, std::uint64_t position) {
  std::string key(1, kind);
  put(key, position);
  return key;
}

std::string topic_key(const std::string& topic) {
  std::string key(1, 's');
  key += topic;
  return key;
}

std::string index_key(const std::string& topic, std::uint64_t sequence) {
  std::string key(1, 't');
  key += topic;
  key.push_back('\0');
  put(key, sequence);
  return key;
}

class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, std::va_list) override {}
};

class RocksdbOutbox final : public Outbox {
 public:
  RocksdbOutbox(const std::filesystem::path& folder, std::uintmax_t keep_free)
      : folder_(folder), keep_free_(keep_free) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw OutboxError("outbox " + folder.string() + ": " + error.message());
    open();
  }

  std::uint64_t last_sequence(const std::string& topic) const override {
    const auto sequence = get(topic_key(topic));
    return sequence ? decode(*sequence) : 0;
  }

  std::uint64_t append(const OutboxEvent& event) override {
    if (event.sequence != last_sequence(event.topic) + 1)
      throw std::invalid_argument("outbox: a sequence with a gap");
    check_space();
    reopen_after_failure();
    const std::uint64_t position = next_;
    rocksdb::WriteBatch batch;
    check(batch.Put(key_of('e', position), pack(event)));
    check(batch.Put(key_of('p', position), ""));
    check(batch.Put(topic_key(event.topic), encode(event.sequence)));
    check(batch.Put(index_key(event.topic, event.sequence), encode(position)));
    check(batch.Put("n", encode(position + 1)));
    write(synced(), batch);
    next_ = position + 1;
    return position;
  }

  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return unacknowledged_from(first_pending_, limit);
  }

  void acknowledge(std::uint64_t position) override {
    acknowledged_.insert(position);
    reopen_after_failure();
    rocksdb::WriteBatch batch;
    for (const std::uint64_t each : acknowledged_) check(batch.Delete(key_of('p', each)));
    write(rocksdb::WriteOptions(), batch);
    while (acknowledged_.contains(first_pending_)) ++first_pending_;
    acknowledged_.clear();
  }

  std::size_t prune(config::Clock::WallTime before) override {
    reopen_after_failure();
    rocksdb::WriteBatch batch;
    std::size_t count = 0;
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> entry(store().NewIterator(options));
    for (entry->Seek("e"); entry->Valid() && entry->key().starts_with("e"); entry->Next()) {
      const std::uint64_t position = position_of(entry->key());
      const Head head = head_of(entry->value());
      if (head.time >= before || get(key_of('p', position))) continue;
      const std::string topic(head.topic);
      if (head.sequence == last_sequence(topic)) continue;
      check(batch.Delete(entry->key()));
      check(batch.Delete(index_key(topic, head.sequence)));
      ++count;
    }
    check(entry->status());
    if (count > 0) write(rocksdb::WriteOptions(), batch);
    return count;
  }

  const std::string& identity() const override { return identity_; }

  std::uint64_t last_position() const override { return next_ - 1; }

  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    const std::unique_ptr<rocksdb::Iterator> entry(store().NewIterator(rocksdb::ReadOptions()));
    const std::string key = index_key(topic, sequence);
    entry->Seek(key);
    check(entry->status());
    // Only the sequence, the last 8 bytes, may differ.
    const rocksdb::Slice name(key.data(), key.size() - 8);
    if (!entry->Valid() || entry->key().size() != key.size() || !entry->key().starts_with(name)) {
      return std::nullopt;
    }
    return decode(entry->value());
  }

  Replay replay(const ReplayQuery& query) const override {
    Replay result{{}, query.after, false};
    std::size_t scanned = 0;
    std::size_t bytes = 0;
    const std::unique_ptr<rocksdb::Iterator> entry(store().NewIterator(rocksdb::ReadOptions()));
    entry->Seek(key_of('e', query.after));
    if (entry->Valid() && entry->key() == key_of('e', query.after)) entry->Next();
    for (; entry->Valid() && entry->key().starts_with("e"); entry->Next()) {
      const std::uint64_t position = position_of(entry->key());
      const Head head = head_of(entry->value());
      std::optional<OutboxEvent> event;
      if (is_wanted(query, head.topic, head.time)) event = unpack(position, entry->value());
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
    check(entry->status());
    result.cursor = std::max(result.cursor, last_position());
    return result;
  }

  std::vector<OutboxEvent> last_events(std::size_t each) const override {
    std::vector<OutboxEvent> events;
    const std::unique_ptr<rocksdb::Iterator> entry(store().NewIterator(rocksdb::ReadOptions()));
    for (entry->Seek("s"); entry->Valid() && entry->key().starts_with("s"); entry->Next()) {
      const std::string topic(entry->key().data() + 1, entry->key().size() - 1);
      const std::uint64_t last = decode(entry->value());
      for (std::uint64_t sequence = last - std::min<std::uint64_t>(last, each) + 1; sequence <= last;
           ++sequence)
        if (const auto position = get(index_key(topic, sequence)))
          events.push_back(event_at(decode(*position)));
    }
    check(entry->status());
    return events;
  }

 private:
  static rocksdb::WriteOptions synced() {
    rocksdb::WriteOptions options;
    options.sync = true;
    return options;
  }

  void check(const rocksdb::Status& status) const {
    if (!status.ok()) throw OutboxError("outbox " + folder_.string() + ": " + status.ToString());
  }

  static rocksdb::Options options() {
    rocksdb::Options result;
    result.create_if_missing = true;
    // Alerts are few and small: no more memory or threads than they need. What was written last stays in
    // memory up to this size, which at a kilobyte an event is reached after minutes rather than hours.
    result.write_buffer_size = 512 << 10;
    result.max_background_jobs = 1;
    result.max_open_files = 64;
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(1 << 20);
    result.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    // Its own log would be on the same disk. When that is full, RocksDB as Debian builds it ends the process
    // at the log's second line (an assertion of WritableFileWriter), of all things while it reports the
    // error.
    result.info_log = std::make_shared<NoLog>();
    return result;
  }

  void open() {
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options(), folder_.string(), &db);
    if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
      throw OutboxError("outbox " + folder_.string() + ": is locked: another process has it open");
    }
    check(status);
    db_.reset(db);
    const auto version = get("v");
    if (version && *version != kVersion && *version != kVersionWithoutIndex) {
      throw OutboxError("outbox " + folder_.string() + ": has layout " + *version + ", this program knows " +
                        kVersion);
    }
    if (!version || *version == kVersionWithoutIndex) lay_out();
    identity_ = get("i").value_or("");
    const auto next = get("n");
    next_ = next ? decode(*next) : 1;
    const auto pending = unacknowledged_from(0, 1);
    first_pending_ = pending.empty() ? next_ : pending.front().position;
    failed_ = false;
  }

  /// Whether RocksDB recovers from a failed write by itself depends on the error, and is never soon. Opened
  /// again, it has what was written, and goes on.
  void reopen_after_failure() {
    if (!failed_) return;
    check_space();
    db_.reset();
    try {
      open();
    } catch (const OutboxError&) {
      // Newer versions write when they are opened, which a full disk refuses: what is kept can be read
      // meanwhile.
      rocksdb::DB* db = nullptr;
      if (rocksdb::DB::OpenForReadOnly(options(), folder_.string(), &db).ok()) db_.reset(db);
      throw;
    }
  }

  /// Keeps RocksDB from writing to a full disk: all that is kept can be read meanwhile, and it goes on at
  /// once when there is room again.
  void check_space() const {
    std::error_code error;
    const auto space = std::filesystem::space(folder_, error);
    if (!error && space.available < keep_free_) {
      throw OutboxError("outbox " + folder_.string() + ": no space left on the disk (" +
                        std::to_string(space.available >> 20) + " MiB; " + std::to_string(keep_free_ >> 20) +
                        " MiB are kept free)");
    }
  }

  rocksdb::DB& store() const {
    if (!db_) throw OutboxError("outbox " + folder_.string() + ": could not be opened again after an error");
    return *db_;
  }

  void write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch& batch) {
    const rocksdb::Status status = store().Write(options, &batch);
    failed_ = failed_ || !status.ok();
    check(status);
  }

  /// Makes a new outbox, or one of the older layout, one of this layout.
  void lay_out() {
    rocksdb::WriteBatch batch;
    const std::unique_ptr<rocksdb::Iterator> entry(store().NewIterator(rocksdb::ReadOptions()));
    for (entry->Seek("e"); entry->Valid() && entry->key().starts_with("e"); entry->Next()) {
      const Head head = head_of(entry->value());
      check(batch.Put(index_key(std::string(head.topic), head.sequence), encode(position_of(entry->key()))));
    }
    check(entry->status());
    check(batch.Put("i", new_outbox_identity()));
    check(batch.Put("v", kVersion));
    write(synced(), batch);
  }

  std::vector<OutboxEvent> unacknowledged_from(std::uint64_t first, std::size_t limit) const {
    std::vector<OutboxEvent> events;
    const std::unique_ptr<rocksdb::Iterator> entry(store().NewIterator(rocksdb::ReadOptions()));
    for (entry->Seek(key_of('p', first)); entry->Valid() && events.size() < limit; entry->Next()) {
      if (!entry->key().starts_with("p")) break;
      const std::uint64_t position = position_of(entry->key());
      if (!acknowledged_.contains(position)) events.push_back(event_at(position));
    }
    check(entry->status());
    return events;
  }

  OutboxEvent event_at(std::uint64_t position) const {
    const auto bytes = get(key_of('e', position));
    if (!bytes) throw OutboxError("outbox " + folder_.string() + ": an event is missing");
    return unpack(position, *bytes);
  }

  std::optional<std::string> get(const std::string& key) const {
    std::string value;
    const rocksdb::Status status = store().Get(rocksdb::ReadOptions(), key, &value);
    if (status.IsNotFound()) return std::nullopt;
    check(status);
    return value;
  }

  std::uint64_t decode(const rocksdb::Slice& bytes) const {
    if (bytes.size() != 8) throw damaged();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value = value << 8U | static_cast<unsigned char>(bytes[i]);
    return value;
  }

  std::uint64_t position_of(const rocksdb::Slice& key) const {
    return decode(rocksdb::Slice(key.data() + 1, key.size() - 1));
  }

  static std::string pack(const OutboxEvent& event) {
    const auto time =
        std::chrono::duration_cast<std::chrono::microseconds>(event.time.time_since_epoch()).count();
    std::string bytes;
    put(bytes, event.sequence);
    put(bytes, static_cast<std::uint64_t>(time));
    put(bytes, event.topic.size());
    bytes += event.topic;
    bytes += event.body;
    return bytes;
  }

  /// An entry without its body; `topic` is a view of it.
  struct Head {
    std::uint64_t sequence = 0;
    config::Clock::WallTime time;
    std::string_view topic;
  };

  Head head_of(const rocksdb::Slice& bytes) const {
    if (bytes.size() < 24) throw damaged();
    const auto number = [&](std::size_t at) { return decode(rocksdb::Slice(bytes.data() + at, 8)); };
    const std::uint64_t length = number(16);
    if (length > bytes.size() - 24) throw damaged();
    const std::chrono::microseconds time(static_cast<std::int64_t>(number(8)));
    return {number(0), config::Clock::WallTime(time), {bytes.data() + 24, length}};
  }

  OutboxEvent unpack(std::uint64_t position, const rocksdb::Slice& bytes) const {
    const Head head = head_of(bytes);
    const std::size_t begin = 24 + head.topic.size();
    return {position, std::string(head.topic), head.sequence, head.time,
            std::string(bytes.data() + begin, bytes.size() - begin)};
  }

  OutboxError damaged() const { return OutboxError("outbox " + folder_.string() + ": an entry is damaged"); }

  std::filesystem::path folder_;
  std::uintmax_t keep_free_;
  /// Nothing if it could not be opened again after an error.
  std::unique_ptr<rocksdb::DB> db_;
  std::string identity_;
  std::uint64_t next_ = 1;
  /// No event before it waits for an acknowledgement: it spares the search what was deleted there.
  std::uint64_t first_pending_ = 1;
  /// Acknowledged, but not written yet.
  std::set<std::uint64_t> acknowledged_;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Outbox> open_rocksdb_outbox(const std::filesystem::path& folder, std::uintmax_t keep_free) {
  return std::make_unique<RocksdbOutbox>(folder, keep_free);
}

}  // namespace vigil::actors
