#include "engine/kv/history/index_database.h"

#include <utility>

#include "engine/kv/database/rocksdb_parts.h"
#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/erasure_file.h"

namespace vigil::history {
namespace {

// What the first byte of a row says that it is, in the family of all that is not a part's entry.
constexpr char kKey = 'k';
constexpr char kLastPage = 'n';
constexpr char kErasure = 'e';
constexpr char kFormat = 'f';
constexpr char kRemoved = 'r';
constexpr char kMark = 'm';
constexpr char kNotes = 'g';

rocksdb::Options index_options() {
  rocksdb::Options options = kv::database_options();
  options.create_missing_column_families = true;
  // Entries of a part are some tens of kilobytes.
  options.write_buffer_size = 4 << 20;
  options.max_bgerror_resume_count = 0;
  // A day's rows are some tens of megabytes: merged seldom, they are not written again and again.
  options.level0_file_num_compaction_trigger = 16;
  options.level0_slowdown_writes_trigger = 40;
  options.level0_stop_writes_trigger = 60;
  // A manifest names first and last keys, and hours with them, of tables that are long gone: each change
  // begins a new one, of a kilobyte or two.
  options.max_manifest_file_size = 1;
  return options;
}

std::string number_key(char kind, std::uint64_t number) {
  std::string key(1, kind);
  ByteWriter writer(key);
  writer.fixed(number);
  return key;
}

std::optional<std::uint64_t> number_in(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto number = reader.fixed<std::uint64_t>();
  if (!reader.done()) return std::nullopt;
  return number;
}

rocksdb::Slice slice_of(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}

/// False for a row that makes no sense.
bool take(IndexContent& content, char kind, std::string_view key, std::string_view value) {
  switch (kind) {
    case kKey:
      if (auto hour = decode_hour_key(key)) {
        content.keys.emplace_back(std::move(*hour), value);
        return true;
      }
      return false;
    case kLastPage: {
      auto camera = decode_camera(key);
      const auto number = number_in(value);
      if (!camera || !number) return false;
      content.last_pages.emplace_back(std::move(*camera), *number);
      return true;
    }
    case kErasure:
      if (auto erasure = decode_erasure(value)) {
        content.erasures.push_back(std::move(*erasure));
        return true;
      }
      return false;
    case kNotes: {
      auto camera = decode_camera(key);
      if (!camera) return false;
      content.notes.emplace_back(std::move(*camera), value);
      return true;
    }
    case kRemoved:
      if (const auto part = number_in(key)) {
        content.removed.push_back(*part);
        return true;
      }
      return false;
    case kFormat:
      content.format = std::string(value);
      return true;
    case kMark:
      return true;
    default:
      return false;
  }
}

}  // namespace

void IndexBatch::put(rocksdb::ColumnFamilyHandle* family, const std::string& key, std::string_view value) {
  index_.check(batch_.Put(family, key, slice_of(value)), "cannot be written");
}

void IndexBatch::remove(rocksdb::ColumnFamilyHandle* family, const std::string& key) {
  index_.check(batch_.Delete(family, key), "cannot be written");
}

void IndexBatch::put_part(const PartKey& key, std::string_view entry) {
  put(index_.parts_, encode(key), entry);
}

void IndexBatch::remove_part(const PartKey& key) {
  remove(index_.parts_, encode(key));
  put(index_.others_, number_key(kRemoved, key.part), {});
}

void IndexBatch::forget_removed(std::uint64_t part) {
  remove(index_.others_, number_key(kRemoved, part));
}

void IndexBatch::put_key(const HourKey& hour, std::string_view wrapped) {
  put(index_.others_, kKey + encode(hour), wrapped);
}

void IndexBatch::remove_key(const HourKey& hour) {
  remove(index_.others_, kKey + encode(hour));
}

void IndexBatch::put_last_page(const CameraId& camera, std::uint64_t number) {
  std::string value;
  ByteWriter(value).fixed(number);
  put(index_.others_, kLastPage + encode(camera), value);
}

void IndexBatch::put_erasure(const Erasure& erasure) {
  put(index_.others_, number_key(kErasure, erasure.id), encode_erasure(erasure));
}

void IndexBatch::remove_erasure(std::uint64_t id) {
  remove(index_.others_, number_key(kErasure, id));
}

void IndexBatch::put_notes(const CameraId& camera, std::string_view notes) {
  put(index_.others_, kNotes + encode(camera), notes);
}

void IndexBatch::remove_notes(const CameraId& camera) {
  remove(index_.others_, kNotes + encode(camera));
}

void IndexBatch::put_format(std::string_view text) {
  put(index_.others_, std::string(1, kFormat), text);
}

IndexDatabase::IndexDatabase(std::filesystem::path folder) : folder_(std::move(folder)) {
  const rocksdb::Options options = index_options();
  const std::vector<rocksdb::ColumnFamilyDescriptor> families = {{rocksdb::kDefaultColumnFamilyName, options},
                                                                 {"others", options}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, folder_.string(), families, &handles, &db);
  if (kv::is_locked(status))
    throw HistoryError("history " + folder_.string() + ": is locked: another process has it open");
  check(status, "cannot be opened");
  db_.reset(db);
  parts_ = handles.at(0);
  others_ = handles.at(1);
}

IndexDatabase::~IndexDatabase() {
  for (rocksdb::ColumnFamilyHandle* each : {parts_, others_})
    if (each != nullptr) db_->DestroyColumnFamilyHandle(each).PermitUncheckedError();
}

void IndexDatabase::check(const rocksdb::Status& status, const char* what) const {
  if (status.ok()) return;
  const std::string text = "history " + folder_.string() + ": " + what + ": " + status.ToString();
  if (kv::is_damage(status)) throw IndexDamaged(text);
  throw HistoryError(text);
}

void IndexDatabase::each_row(rocksdb::ColumnFamilyHandle* family,
                             const std::function<void(std::string_view, std::string_view)>& row) const {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = 2 << 20;
  const std::unique_ptr<rocksdb::Iterator> entry(db_->NewIterator(options, family));
  for (entry->SeekToFirst(); entry->Valid(); entry->Next())
    row(kv::view_of(entry->key()), kv::view_of(entry->value()));
  check(entry->status(), "cannot be read");
}

IndexContent IndexDatabase::content() {
  IndexContent content;
  bool strange = false;
  each_row(parts_, [&](std::string_view key, std::string_view value) {
    auto part = decode_part_key(key);
    strange = strange || !part;
    if (part) content.parts.push_back({std::move(*part), std::string(value)});
  });
  each_row(others_, [&](std::string_view key, std::string_view value) {
    strange = strange || key.empty() || !take(content, key[0], key.substr(1), value);
  });
  if (strange) throw IndexDamaged("history " + folder_.string() + ": has rows that make no sense");
  return content;
}

void IndexDatabase::write(IndexBatch& batch) {
  rocksdb::WriteOptions options;
  options.sync = true;
  check(db_->Write(options, &batch.batch_), "cannot be written");
}

void IndexDatabase::scrub(const std::vector<CameraId>& cameras) {
  // The log holds what was written last, and goes once all of it is in tables.
  rocksdb::FlushOptions flush;
  check(db_->Flush(flush, {parts_, others_}), "cannot be written");
  rocksdb::CompactRangeOptions compact;
  compact.exclusive_manual_compaction = false;
  compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  check(db_->CompactRange(compact, others_, nullptr, nullptr), "cannot be written");
  for (const CameraId& camera : cameras) {
    const std::string first = encode(camera);
    // Behind all keys that it begins: they go on with a number.
    const std::string last = first + std::string(4 + 8, '\xFF');
    const rocksdb::Slice begin(first);
    const rocksdb::Slice end(last);
    check(db_->CompactRange(compact, parts_, &begin, &end), "cannot be written");
  }
  // A manifest begins with what was there before the change that it was begun for: so one more, of a row that
  // says nothing.
  check(db_->Put(rocksdb::WriteOptions(), others_, std::string(1, kMark), ""), "cannot be written");
  check(db_->Flush(flush, others_), "cannot be written");
  // Files that somebody still read when they became obsolete.
  check(db_->DisableFileDeletions(), "cannot be written");
  check(db_->EnableFileDeletions(/*force=*/true), "cannot be written");
}

}  // namespace vigil::history
