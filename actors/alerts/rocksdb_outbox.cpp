// Keys: "e" + position -> event; "p" + position -> "" while it is not acknowledged; topic_key(topic) -> last
// sequence; "n" -> next position; "v" -> version of this layout. Numbers in keys are big-endian, so that the
// store's order is theirs.
#include <optional>
#include <system_error>
#include <utility>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "actors/alerts/outbox.h"

namespace vigil::actors {
namespace {

constexpr const char* kVersion = "1";

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

class RocksdbOutbox final : public Outbox {
 public:
  explicit RocksdbOutbox(const std::filesystem::path& folder) : folder_(folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw OutboxError("outbox " + folder.string() + ": " + error.message());
    rocksdb::Options options;
    options.create_if_missing = true;
    // Alerts are few and small: no more memory or threads than they need.
    options.write_buffer_size = 4 << 20;
    options.max_background_jobs = 1;
    options.keep_log_file_num = 2;
    options.max_log_file_size = 1 << 20;
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, folder.string(), &db);
    if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
      throw OutboxError("outbox " + folder.string() + ": is locked: another process has it open");
    }
    check(status);
    db_.reset(db);
    if (const auto version = get("v"); !version) {
      check(db_->Put(synced(), "v", kVersion));
    } else if (*version != kVersion) {
      throw OutboxError("outbox " + folder.string() + ": has layout " + *version + ", this program knows " +
                        kVersion);
    }
    if (const auto next = get("n")) next_ = decode(*next);
  }

  std::uint64_t last_sequence(const std::string& topic) const override {
    const auto sequence = get(topic_key(topic));
    return sequence ? decode(*sequence) : 0;
  }

  std::uint64_t append(const OutboxEvent& event) override {
    if (event.sequence != last_sequence(event.topic) + 1)
      throw std::invalid_argument("outbox: a sequence with a gap");
    const std::uint64_t position = next_;
    rocksdb::WriteBatch batch;
    check(batch.Put(key_of('e', position), pack(event)));
    check(batch.Put(key_of('p', position), ""));
    check(batch.Put(topic_key(event.topic), encode(event.sequence)));
    check(batch.Put("n", encode(position + 1)));
    check(db_->Write(synced(), &batch));
    next_ = position + 1;
    return position;
  }

  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    std::vector<OutboxEvent> events;
    const std::unique_ptr<rocksdb::Iterator> entry(db_->NewIterator(rocksdb::ReadOptions()));
    for (entry->Seek("p"); entry->Valid() && events.size() < limit; entry->Next()) {
      if (!entry->key().starts_with("p")) break;
      const std::uint64_t position = position_of(entry->key());
      const auto bytes = get(key_of('e', position));
      if (!bytes)
        throw OutboxError("outbox " + folder_.string() + ": an event that was not published is missing");
      events.push_back(unpack(position, *bytes));
    }
    check(entry->status());
    return events;
  }

  void acknowledge(std::uint64_t position) override {
    check(db_->Delete(rocksdb::WriteOptions(), key_of('p', position)));
  }

  std::size_t prune(config::Clock::WallTime before) override {
    rocksdb::WriteBatch batch;
    std::size_t count = 0;
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> entry(db_->NewIterator(options));
    for (entry->Seek("e"); entry->Valid() && entry->key().starts_with("e"); entry->Next()) {
      const std::uint64_t position = position_of(entry->key());
      const OutboxEvent event = unpack(position, entry->value().ToString());
      if (event.time >= before || get(key_of('p', position))) continue;
      check(batch.Delete(entry->key()));
      ++count;
    }
    check(entry->status());
    check(db_->Write(rocksdb::WriteOptions(), &batch));
    return count;
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

  std::optional<std::string> get(const std::string& key) const {
    std::string value;
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key, &value);
    if (status.IsNotFound()) return std::nullopt;
    check(status);
    return value;
  }

  std::uint64_t decode(const std::string& bytes) const {
    if (bytes.size() != 8) throw damaged();
    std::uint64_t value = 0;
    for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
    return value;
  }

  std::uint64_t position_of(const rocksdb::Slice& key) const {
    return decode(std::string(key.data() + 1, key.size() - 1));
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

  OutboxEvent unpack(std::uint64_t position, const std::string& bytes) const {
    if (bytes.size() < 24) throw damaged();
    OutboxEvent event;
    event.position = position;
    event.sequence = decode(bytes.substr(0, 8));
    const std::chrono::microseconds time(static_cast<std::int64_t>(decode(bytes.substr(8, 8))));
    event.time = config::Clock::WallTime(time);
    const std::uint64_t length = decode(bytes.substr(16, 8));
    if (length > bytes.size() - 24) throw damaged();
    event.topic = bytes.substr(24, length);
    event.body = bytes.substr(24 + length);
    return event;
  }

  OutboxError damaged() const { return OutboxError("outbox " + folder_.string() + ": an entry is damaged"); }

  std::filesystem::path folder_;
  std::unique_ptr<rocksdb::DB> db_;
  std::uint64_t next_ = 1;
};

}  // namespace

std::unique_ptr<Outbox> open_rocksdb_outbox(const std::filesystem::path& folder) {
  return std::make_unique<RocksdbOutbox>(folder);
}

}  // namespace vigil::actors
