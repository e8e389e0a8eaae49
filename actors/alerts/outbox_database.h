// The outbox's database as it has to be opened: what the watermark vouches for, or what is left of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "actors/alerts/outbox.h"
#include "actors/alerts/outbox_folder.h"
#include "actors/alerts/watermark.h"
#include "engine/kv/database/rocksdb_parts.h"

namespace vigil::actors {

/// Owns the folder, the watermark and the database. Every call may throw OutboxError; one that meets damage
/// does, and the next one begins by replacing the database with what can be read of it. Not thread-safe.
class OutboxDatabase {
 public:
  OutboxDatabase(const std::filesystem::path& folder, config::RetentionClock& ages, std::uintmax_t keep_free);
  ~OutboxDatabase();
  OutboxDatabase(const OutboxDatabase&) = delete;
  OutboxDatabase& operator=(const OutboxDatabase&) = delete;

  /// To be called before it is written to: after a failure, it is opened again. RocksDB does that by itself
  /// only after some errors, and never soon. Throws once if its folder is not where it was: what is written
  /// there nobody finds again. The next call begins at the place where it was.
  void make_writable();
  /// To be called before it is read from, in the same way. `patient`: leaves a disk alone that failed a
  /// moment ago.
  void make_readable(bool patient);
  /// Keeps RocksDB from writing to a full disk: all that is kept can be read meanwhile, and it goes on at
  /// once when there is room again. Damaged files that were set aside go first.
  void check_space();

  std::optional<std::string> get(const std::string& key);
  /// To be checked at its end.
  std::unique_ptr<rocksdb::Iterator> entries(bool fill_cache = true);
  void check(const rocksdb::Status& status);
  /// Of an entry that makes no sense.
  [[noreturn]] void fail_damaged(const std::string& what);

  /// `sync`: it lies on the disk when this returns.
  void write(rocksdb::WriteBatch& batch, bool sync = false);
  /// Writes events, the last of them at this position: nobody may hear of them before this returns.
  void keep(rocksdb::WriteBatch& batch, std::uint64_t last_position);
  /// Events up to this position may be missing from now on.
  void settle(std::uint64_t position);

  const std::string& identity() const { return identity_; }
  /// Whether it was made of what could be read of another one.
  bool rebuilt() const { return folder_.database() != folder_.path(); }
  std::uint64_t next_position() const { return next_; }
  /// When events without a stamp were appended at the latest.
  base::Clock::WallTime taken_over() const { return taken_over_; }
  /// Another one each time that it was opened: what is known of the entries holds no more.
  std::uint64_t generation() const { return generation_; }
  std::filesystem::path folder() const { return folder_.path(); }
  config::RetentionClock& ages() const { return ages_; }
  std::vector<OutboxNotice> take_notices();

 private:
  struct Damage {
    std::string reason;
    std::string text;
  };

  void open();
  void open_again();
  void begin_elsewhere();
  std::optional<Damage> inspect();
  std::optional<Damage> compare(rocksdb::DB& db);
  void open_database();
  void rebuild(const Damage& damage);
  void take_over(bool older_layout);
  void begin_watermark();
  void resume_ages();
  void tell(std::string reason, const std::string& text);
  std::string name() const { return "outbox " + folder_.path().string(); }

  OutboxFolder folder_;
  config::RetentionClock& ages_;
  std::uintmax_t keep_free_;
  std::unique_ptr<WatermarkFile> watermark_;
  /// Nothing if it could not be opened.
  std::unique_ptr<rocksdb::DB> db_;
  std::string identity_;
  /// The identity when it was last opened with success.
  std::string opened_as_;
  std::uint64_t next_ = 1;
  base::Clock::WallTime taken_over_{};
  std::uint64_t generation_ = 0;
  /// It cannot be written to until it was opened again.
  bool failed_ = false;
  /// What was there is gone, and that is still to be told.
  bool lost_ = false;
  kv::ReadErrors read_errors_;
  std::optional<Damage> damage_;
  /// Why nothing vouches for what is there, so that it needs a new identity.
  std::optional<Damage> doubt_;
  bool resumed_ = false;
  std::string failure_;
  base::Clock::WallTime retry_at_{};
  std::vector<OutboxNotice> notices_;
};

}  // namespace vigil::actors
