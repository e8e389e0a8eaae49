// What the index remembers from one start to the next: a small RocksDB, synced with every change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "engine/kv/history/history_store.h"

namespace vigil::history {

/// What is there cannot be read: it has to be made anew of what the parts say of themselves.
class IndexDamaged : public HistoryError {
 public:
  using HistoryError::HistoryError;
};

class IndexDatabase;

/// Changes that count together or not at all. Not thread-safe.
class IndexBatch {
 public:
  explicit IndexBatch(IndexDatabase& index) : index_(index) {}

  void put_part(const PartKey& key, std::string_view entry);
  /// Its file is to be removed; until `forget_removed`, the next start does it.
  void remove_part(const PartKey& key);
  void forget_removed(std::uint64_t part);
  void put_key(const HourKey& hour, std::string_view wrapped);
  void remove_key(const HourKey& hour);
  void put_last_page(const CameraId& camera, std::uint64_t number);
  void put_erasure(const Erasure& erasure);
  void remove_erasure(std::uint64_t id);
  void put_notes(const CameraId& camera, std::string_view notes);
  void remove_notes(const CameraId& camera);
  void put_format(std::string_view text);
  bool empty() const { return batch_.Count() == 0; }

 private:
  friend class IndexDatabase;
  void put(rocksdb::ColumnFamilyHandle* family, const std::string& key, std::string_view value);
  void remove(rocksdb::ColumnFamilyHandle* family, const std::string& key);

  IndexDatabase& index_;
  rocksdb::WriteBatch batch_;
};

/// What is read of it at a start.
struct IndexContent {
  struct Part {
    PartKey key;
    std::string entry;
  };
  std::vector<Part> parts;
  /// Of parts whose files are to be removed.
  std::vector<std::uint64_t> removed;
  std::vector<std::pair<HourKey, std::string>> keys;
  std::vector<std::pair<CameraId, std::uint64_t>> last_pages;
  std::vector<Erasure> erasures;
  std::vector<std::pair<CameraId, std::string>> notes;
  std::optional<std::string> format;
};

/// Entries of parts are in one column family, all else, which is little, in another: so that a key that is
/// destroyed costs no more than that. Functions throw HistoryError, and IndexDamaged. One caller at a time.
class IndexDatabase {
 public:
  explicit IndexDatabase(std::filesystem::path folder);
  ~IndexDatabase();
  IndexDatabase(const IndexDatabase&) = delete;
  IndexDatabase& operator=(const IndexDatabase&) = delete;

  IndexContent content();
  /// On the disk when it returns. After it has thrown, it is not known whether the batch counts, and it has
  /// to be opened again.
  void write(IndexBatch& batch);
  /// What was removed or replaced is in no file any more: of all but the entries of parts; of those, too, for
  /// these cameras.
  void scrub(const std::vector<CameraId>& cameras);

 private:
  friend class IndexBatch;
  void check(const rocksdb::Status& status, const char* what) const;
  void each_row(rocksdb::ColumnFamilyHandle* family,
                const std::function<void(std::string_view, std::string_view)>& row) const;

  std::filesystem::path folder_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* parts_ = nullptr;
  rocksdb::ColumnFamilyHandle* others_ = nullptr;
};

}  // namespace vigil::history
