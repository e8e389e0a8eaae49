#include "actors/alerts/salvage.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/write_batch.h>

#include "actors/alerts/outbox_records.h"
#include "engine/kv/database/rocksdb_parts.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;

// Behind a block that cannot be read, so many positions are tried one by one: more than a block has.
constexpr std::uint64_t kProbes = 4096;
constexpr std::size_t kBatchBytes = 512 << 10;

/// Of a folder that may be missing.
std::vector<fs::path> files_with(const fs::path& folder, const char* extension) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == extension) files.push_back(entry->path());
  if (error && error != std::errc::no_such_file_or_directory)
    throw OutboxError("outbox " + folder.string() + ": cannot be read: " + error.message());
  // In the order in which they were written.
  std::sort(files.begin(), files.end());
  return files;
}

/// Fills the new database.
class Rebuilt {
 public:
  Rebuilt(const fs::path& folder, const SalvageOptions& options) : folder_(folder), options_(options) {
    rocksdb::DB* db = nullptr;
    check(rocksdb::DB::Open(kv::database_options(), folder.string(), &db));
    db_.reset(db);
  }

  void add(std::uint64_t position, std::string_view bytes) {
    const auto head = decode_event_head(bytes);
    if (!head) return;
    const auto event = decode_event(position, bytes);
    std::uint64_t& last = sequences_[event->topic];
    last = std::max(last, event->sequence);
    positions_.insert(position);
    put(position_key('e', position),
        encode_event(*event, head->stamp.value_or(std::min(event->time, options_.now))));
    put(index_key(event->topic, event->sequence), encode_number(position));
  }
  void add_pending(std::uint64_t position) { pending_.insert(position); }
  /// It cannot be read whether events between these positions, these not included, were acknowledged.
  void add_doubtful(std::uint64_t after, std::uint64_t before) { doubtful_.emplace_back(after, before); }
  void add_sequence(const std::string& topic, std::uint64_t sequence) {
    std::uint64_t& last = sequences_[topic];
    last = std::max(last, sequence);
  }

  Salvaged finish() {
    for (const auto& [after, before] : doubtful_)
      for (auto each = positions_.upper_bound(after); each != positions_.end() && *each < before; ++each)
        pending_.insert(*each);
    for (const std::uint64_t position : pending_)
      if (positions_.contains(position)) put(position_key('p', position), "");
    for (const auto& [topic, sequence] : sequences_) put(topic_key(topic), encode_number(sequence));
    Salvaged result;
    result.events = positions_.size();
    result.counted = static_cast<std::uint64_t>(
        std::distance(positions_.upper_bound(options_.counted_after), positions_.end()));
    result.last_position = std::max(options_.position, positions_.empty() ? 0 : *positions_.rbegin());
    put("n", encode_number(result.last_position + 1));
    put("i", options_.identity);
    put("v", kOutboxLayout);
    write();
    check(db_->Flush(rocksdb::FlushOptions()));
    check(db_->Close());
    return result;
  }

 private:
  void put(std::string_view key, std::string_view value) {
    check(batch_.Put(rocksdb::Slice(key.data(), key.size()), rocksdb::Slice(value.data(), value.size())));
    if (batch_.GetDataSize() >= kBatchBytes) write();
  }
  // No log: nothing of it counts before all of it is on the disk.
  void write() {
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    check(db_->Write(options, &batch_));
    batch_.Clear();
  }
  void check(const rocksdb::Status& status) const {
    if (!status.ok()) throw OutboxError("outbox " + folder_.string() + ": " + status.ToString());
  }

  fs::path folder_;
  const SalvageOptions& options_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteBatch batch_;
  std::set<std::uint64_t> positions_;
  std::set<std::uint64_t> pending_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> doubtful_;
  std::map<std::string, std::uint64_t> sequences_;
};

/// A place in a table that may be damaged. Each seek is an iterator's first: one that met damage may take the
/// same block for an empty one when it is asked again.
class Cursor {
 public:
  explicit Cursor(rocksdb::SstFileReader& table) : table_(table) { options_.fill_cache = false; }

  /// Whether it could be read what is there.
  bool seek(std::string_view key) {
    entry_.reset(table_.NewIterator(options_));
    entry_->Seek(rocksdb::Slice(key.data(), key.size()));
    return !damaged();
  }
  void next() { entry_->Next(); }
  bool damaged() const { return !entry_->Valid() && !entry_->status().ok(); }
  /// Whether it is at an entry of this kind.
  bool at(char kind) const { return entry_->Valid() && entry_->key().starts_with(rocksdb::Slice(&kind, 1)); }
  std::string_view key() const { return kv::view_of(entry_->key()); }
  std::string_view value() const { return kv::view_of(entry_->value()); }

 private:
  rocksdb::SstFileReader& table_;
  rocksdb::ReadOptions options_;
  std::unique_ptr<rocksdb::Iterator> entry_;
};

/// Moves a cursor that met damage behind `last` to the first entry that can be read again.
void seek_behind_damage(Cursor& cursor, char kind, std::uint64_t last) {
  const auto can_seek = [&](std::uint64_t position) { return cursor.seek(position_key(kind, position)); };
  std::uint64_t failed = last;
  std::uint64_t step = 1;
  while (!can_seek(failed + step)) {
    failed += step;
    // `failed` is less than `last` and twice the step: neither can overflow, and nothing is kept so far out.
    if (step > std::numeric_limits<std::uint64_t>::max() / 16 ||
        failed > std::numeric_limits<std::uint64_t>::max() / 4)
      return;
    step *= 2;
  }
  const std::uint64_t readable = failed + step;
  if (readable - last <= kProbes) {
    for (std::uint64_t position = last + 1; position < readable; ++position)
      if (can_seek(position)) return;
    can_seek(readable);
    return;
  }
  std::uint64_t found = readable;
  while (failed + 1 < found) {
    const std::uint64_t middle = failed + (found - failed) / 2;
    (can_seek(middle) ? found : failed) = middle;
  }
  can_seek(found);
}

/// Calls `found(position, value)` for each readable entry of this kind, and `skipped(after, before)` for what
/// lies between.
template <class Found, class Skipped>
void read_positions(Cursor& cursor, char kind, Found found, Skipped skipped) {
  std::uint64_t last = 0;
  cursor.seek(position_key(kind, 0));
  for (;;) {
    const bool damaged = cursor.damaged();
    if (damaged) seek_behind_damage(cursor, kind, last);
    const auto position = cursor.at(kind) ? decode_position_key(cursor.key()) : std::nullopt;
    if (damaged) skipped(last, position.value_or(std::numeric_limits<std::uint64_t>::max()));
    if (!position) return;
    found(*position, cursor.value());
    last = *position;
    cursor.next();
  }
}

void read_table(const fs::path& file, Rebuilt& rebuilt) {
  rocksdb::SstFileReader reader(kv::database_options());
  if (const auto status = reader.Open(file.string()); !status.ok()) {
    // Without descriptors, say, nothing is known of it.
    if (kv::is_damage(status) || kv::is_unreadable(status)) return;
    throw OutboxError("outbox " + file.string() + ": cannot be opened: " + status.ToString());
  }
  Cursor cursor(reader);
  read_positions(
      cursor, 'e', [&](std::uint64_t position, std::string_view value) { rebuilt.add(position, value); },
      [](std::uint64_t, std::uint64_t) {});
  read_positions(
      cursor, 'p', [&](std::uint64_t position, std::string_view) { rebuilt.add_pending(position); },
      [&](std::uint64_t after, std::uint64_t before) { rebuilt.add_doubtful(after, before); });
  // Where these end early, the events tell.
  for (cursor.seek("s"); cursor.at('s'); cursor.next())
    if (const auto sequence = decode_number(cursor.value()))
      rebuilt.add_sequence(std::string(cursor.key().substr(1)), *sequence);
}

/// The logs of a database as tables, in a folder of their own, so that they are all that RocksDB repairs.
void convert_logs(const fs::path& damaged, const fs::path& scratch) {
  const std::vector<fs::path> logs = files_with(damaged, ".log");
  for (const fs::path& log : logs) {
    std::error_code error;
    fs::create_hard_link(log, scratch / log.filename(), error);
    if (error) fs::copy_file(log, scratch / log.filename(), error);
    if (error) throw OutboxError("outbox " + log.string() + ": cannot be read: " + error.message());
  }
  if (logs.empty()) return;
  const rocksdb::Status status = rocksdb::RepairDB(scratch.string(), kv::database_options());
  if (!status.ok() && !kv::is_damage(status)) {
    throw OutboxError("outbox " + damaged.string() + ": its log cannot be read: " + status.ToString());
  }
}

}  // namespace

Salvaged salvage(const fs::path& damaged, const fs::path& scratch, const fs::path& next,
                 const SalvageOptions& options) {
  convert_logs(damaged, scratch);
  Rebuilt rebuilt(next, options);
  for (const fs::path& folder : {damaged, scratch, scratch / "lost"})
    for (const fs::path& table : files_with(folder, ".sst")) read_table(table, rebuilt);
  return rebuilt.finish();
}

}  // namespace vigil::actors
