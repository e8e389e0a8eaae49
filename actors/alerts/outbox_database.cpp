#include "actors/alerts/outbox_database.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <rocksdb/env.h>

#include "actors/alerts/outbox_parts.h"
#include "actors/alerts/outbox_records.h"
#include "actors/alerts/salvage.h"
#include "engine/kv/database/rocksdb_parts.h"

namespace vigil::actors {
namespace {

// Readers leave a disk alone for so long that could not be opened.
constexpr auto kRetryAfter = std::chrono::seconds(1);

/// What meets damage while it is being opened.
class DamageFound : public OutboxError {
 public:
  using OutboxError::OutboxError;
};

std::string count_text(std::uint64_t count) {
  return count == 1 ? "1 event" : std::to_string(count) + " events";
}

}  // namespace

OutboxDatabase::OutboxDatabase(const std::filesystem::path& folder, config::RetentionClock& ages,
                               std::uintmax_t keep_free)
    : folder_(folder), ages_(ages), keep_free_(keep_free) {
  watermark_ = std::make_unique<WatermarkFile>(folder_.path());
  if (const auto trouble = folder_.make_private()) tell("outbox_mode", "others may read it: " + *trouble);
  if (watermark_->last()) {
    ages_.resume(watermark_->last()->time);
    resumed_ = true;
  }
  folder_.tidy(ages_.now());
  open();
}

OutboxDatabase::~OutboxDatabase() = default;

void OutboxDatabase::tell(std::string reason, const std::string& text) {
  notices_.push_back({std::move(reason), name() + ": " + text});
}

std::vector<OutboxNotice> OutboxDatabase::take_notices() {
  return std::exchange(notices_, {});
}

void OutboxDatabase::make_writable() {
  if (db_ && !failed_ && !damage_) {
    if (watermark_->in_place()) return;
    failed_ = true;
    throw OutboxError(name() + ": its folder was removed or replaced while it was open");
  }
  check_space();
  open_again();
}

void OutboxDatabase::make_readable(bool patient) {
  if (db_ && !damage_) return;
  if (patient && ages_.now() < retry_at_) throw OutboxError(failure_);
  open_again();
}

void OutboxDatabase::check_space() {
  for (;;) {
    std::error_code error;
    const auto space = std::filesystem::space(folder_.path(), error);
    if (error || space.available >= keep_free_) return;
    const auto gone = folder_.forget_damaged();
    if (!gone) {
      throw OutboxError(name() + ": no space left on the disk (" + std::to_string(space.available >> 20) +
                        " MiB; " + std::to_string(keep_free_ >> 20) + " MiB are kept free)");
    }
    tell("outbox_space", "the disk is full: " + gone->filename().string() + " was removed");
  }
}

void OutboxDatabase::open_again() {
  db_.reset();
  const std::string before = opened_as_;
  try {
    open();
  } catch (const OutboxError& error) {
    failed_ = true;
    failure_ = error.what();
    retry_at_ = ages_.now() + kRetryAfter;
    // Newer versions write when they are opened, which a full disk refuses: what is kept can be read
    // meanwhile.
    rocksdb::DB* db = nullptr;
    if (!db_ && !damage_ &&
        rocksdb::DB::OpenForReadOnly(kv::database_options(), folder_.database().string(), &db).ok()) {
      db_.reset(db);
    }
    throw;
  }
  // Who counted sequences in the one that was replaced has to count again.
  if (opened_as_ != before) throw OutboxError(name() + ": was replaced by what could be read of it");
}

// In the place of one that is gone. It may be empty, or hold what somebody put there.
void OutboxDatabase::begin_elsewhere() {
  // What follows may fail, and is tried again.
  lost_ = lost_ || (watermark_ && watermark_->last() && watermark_->last()->position > 0);
  watermark_.reset();
  folder_ = OutboxFolder(folder_.path());
  watermark_ = std::make_unique<WatermarkFile>(folder_.path());
  folder_.make_private();
  damage_.reset();
  if (std::exchange(lost_, false))
    tell("outbox_missing", "its folder was removed or replaced while it was open; what is there now counts");
}

void OutboxDatabase::open() {
  if (!watermark_ || !watermark_->in_place()) begin_elsewhere();
  doubt_.reset();
  if (!damage_) damage_ = inspect();
  for (bool rebuilt = false;; rebuilt = true) {
    if (damage_) rebuild(*damage_);
    try {
      open_database();
      break;
    } catch (const DamageFound& error) {
      db_.reset();
      if (rebuilt) throw;
    }
  }
  begin_watermark();
  failed_ = false;
  opened_as_ = identity_;
  ++generation_;
}

// Before it is opened for writing, since that replays the log up to the first damage, and deletes it.
std::optional<OutboxDatabase::Damage> OutboxDatabase::inspect() {
  const auto& watermark = watermark_->last();
  if (!folder_.has_database()) {
    if (!watermark || watermark->position == 0) return std::nullopt;
    doubt_ = Damage{"outbox_missing", "its database is gone"};
    return std::nullopt;
  }
  const std::filesystem::path database = folder_.database();
  // A program from before the watermark knows no other lock.
  rocksdb::Env& env = *kv::database_options().env;
  rocksdb::FileLock* lock = nullptr;
  if (const auto status = env.LockFile((database / "LOCK").string(), &lock); !status.ok()) {
    if (kv::is_locked(status)) throw OutboxLocked(name() + ": is locked: another process has it open");
    check(status);
  }
  env.UnlockFile(lock);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(kv::database_options(), database.string(), &db);
  if (kv::is_damage(status)) return Damage{"outbox_unreadable", "it cannot be opened: " + status.ToString()};
  check(status);
  const std::unique_ptr<rocksdb::DB> opened(db);
  return compare(*opened);
}

std::optional<OutboxDatabase::Damage> OutboxDatabase::compare(rocksdb::DB& db) {
  const auto read = [&](const char* key) -> std::optional<std::string> {
    std::string value;
    const rocksdb::Status status = db.Get(rocksdb::ReadOptions(), key, &value);
    if (status.IsNotFound()) return std::nullopt;
    check(status);
    return value;
  };
  try {
    const auto version = read("v");
    if (version && *version != kOutboxLayout && *version != kOutboxLayoutWithoutStamps &&
        *version != kOutboxLayoutWithoutIndex) {
      throw OutboxLocked(name() + ": has layout " + *version + ", this program knows " +
                         std::string(kOutboxLayout));
    }
    const auto next = read("n");
    const std::uint64_t position = next ? decode_number(*next).value_or(1) - 1 : 0;
    const auto& watermark = watermark_->last();
    if (!watermark) {
      if (watermark_->damaged()) {
        doubt_ = Damage{"outbox_watermark", "its watermark cannot be read"};
      } else if (version == kOutboxLayout && position > 0) {
        doubt_ = Damage{"outbox_watermark", "its watermark is gone"};
      }
      return std::nullopt;
    }
    if (position < watermark->position) {
      return Damage{"outbox_behind", "it ends at position " + std::to_string(position) + ", although " +
                                         std::to_string(watermark->position) + " was kept"};
    }
    const auto identity = read("i");
    if (identity && *identity != watermark->identity) {
      doubt_ = Damage{"outbox_foreign", "its watermark is that of another database"};
      return std::nullopt;
    }
    if (version != kOutboxLayout) return std::nullopt;
    // A version of the database that forgot its last step may reach the watermark, and lack what that step
    // added.
    std::uint64_t kept = 0;
    const std::unique_ptr<rocksdb::Iterator> entry(db.NewIterator(rocksdb::ReadOptions()));
    for (entry->Seek("t"); entry->Valid() && entry->key().starts_with("t"); entry->Next()) {
      const auto place = decode_number(kv::view_of(entry->value()));
      if (place && *place > watermark->settled && *place <= watermark->position) ++kept;
    }
    check(entry->status());
    const std::uint64_t expected = watermark->position - watermark->settled;
    if (kept != expected) {
      return Damage{"outbox_incomplete", "it has " + std::to_string(kept) + " of the last " +
                                             count_text(expected) + " that were kept"};
    }
    return std::nullopt;
  } catch (const DamageFound& error) {
    return *std::exchange(damage_, std::nullopt);
  }
}

void OutboxDatabase::rebuild(const Damage& damage) {
  db_.reset();
  // The caller's may be what is set below. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Damage found = damage;
  const Watermark before = watermark_->last().value_or(Watermark());
  const std::string identity = new_outbox_identity();
  std::error_code error;
  const auto space = std::filesystem::space(folder_.path(), error);
  if (const std::uintmax_t needed = folder_.database_bytes() + keep_free_;
      !error && space.available < needed) {
    damage_ = found;
    throw OutboxError(name() + ": " + found.text + "; what is left cannot be read before " +
                      std::to_string((needed >> 20) + 1) + " MiB are free on the disk");
  }
  const base::Clock::WallTime now = ages_.now();
  const auto next = folder_.make_next();
  const Salvaged kept = salvage(folder_.database(), folder_.make_scratch(), next,
                                {identity, before.position, now, before.settled});
  folder_.replace(next);
  damage_.reset();
  // What the new one says of itself counts from here on.
  watermark_->write_twice({0, identity, kept.last_position, kept.last_position, now});
  std::string text = found.text + "; " + count_text(kept.events) + " could be read";
  const std::uint64_t expected = kept.last_position - before.settled;
  if (before.position > 0 && kept.counted < expected) {
    text += ", " + count_text(expected - kept.counted) + " could not";
  }
  text += ". It goes on under a new identity; the damaged files ";
  try {
    const auto aside = folder_.tidy(now);
    text += aside ? "are in " + aside->filename().string() : "are gone";
  } catch (const OutboxError& trouble) {
    text += std::string("are left for the next start to set aside: ") + trouble.what();
  }
  tell(found.reason, text);
}

void OutboxDatabase::open_database() {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(kv::database_options(), folder_.database().string(), &db);
  if (kv::is_locked(status)) throw OutboxLocked(name() + ": is locked: another process has it open");
  check(status);
  db_.reset(db);
  const auto next = get("n");
  const auto position = next ? decode_number(*next) : std::optional<std::uint64_t>(1);
  if (!position || *position == 0) fail_damaged("the next position");
  next_ = *position;
  const auto known = get("i");
  const auto& watermark = watermark_->last();
  identity_ = known && !doubt_ ? *known : watermark && !doubt_ ? watermark->identity : new_outbox_identity();
  resume_ages();
  const auto version = get("v");
  if (version != kOutboxLayout) {
    take_over(version.has_value());
  } else if (doubt_) {
    rocksdb::WriteBatch batch;
    check(batch.Put("i", identity_));
    write(batch, /*sync=*/true);
  }
  if (doubt_) tell(doubt_->reason, doubt_->text + ". It goes on under a new identity");
  doubt_.reset();
  const auto taken_over = get("u");
  taken_over_ = taken_over ? decode_time(*taken_over).value_or(ages_.now()) : ages_.now();
}

// Without a watermark, the newest event tells how late it was; a machine that thinks it is earlier is not
// asked to explain.
void OutboxDatabase::resume_ages() {
  if (std::exchange(resumed_, true)) return;
  const auto entry = entries();
  entry->SeekForPrev(position_key('e', ~std::uint64_t{0}));
  check(entry->status());
  if (!entry->Valid() || !entry->key().starts_with("e")) return;
  const auto head = decode_event_head(kv::view_of(entry->value()));
  if (head) ages_.resume(std::min(head->stamp.value_or(head->time), ages_.now()));
}

// The watermark comes first: a database of this layout without one would be doubted.
void OutboxDatabase::take_over(bool older_layout) {
  if (const auto& watermark = watermark_->last()) next_ = std::max(next_, watermark->position + 1);
  watermark_->write_twice({0, identity_, next_ - 1, next_ - 1, ages_.now()});
  rocksdb::WriteBatch batch;
  if (older_layout) {
    const auto entry = entries();
    for (entry->Seek("e"); entry->Valid() && entry->key().starts_with("e"); entry->Next()) {
      const auto head = decode_event_head(kv::view_of(entry->value()));
      const auto position = decode_position_key(kv::view_of(entry->key()));
      if (!head || !position) fail_damaged("an event");
      check(batch.Put(index_key(head->topic, head->sequence), encode_number(*position)));
    }
    check(entry->status());
    check(batch.Put("u", encode_time(ages_.now())));
  }
  check(batch.Put("n", encode_number(next_)));
  check(batch.Put("i", identity_));
  check(batch.Put("v", rocksdb::Slice(kOutboxLayout.data(), kOutboxLayout.size())));
  write(batch, /*sync=*/true);
}

// In both slots: a watermark that is forgotten with one of them would vouch for another identity.
void OutboxDatabase::begin_watermark() {
  Watermark watermark{0, identity_, next_ - 1, next_ - 1, ages_.now()};
  if (const auto& last = watermark_->last(); last && last->identity == identity_) {
    watermark.settled = last->settled;
  }
  watermark_->write_twice(watermark);
}

std::optional<std::string> OutboxDatabase::get(const std::string& key) {
  std::string value;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key, &value);
  if (status.IsNotFound()) return std::nullopt;
  check(status);
  return value;
}

std::unique_ptr<rocksdb::Iterator> OutboxDatabase::entries(bool fill_cache) {
  rocksdb::ReadOptions options;
  options.fill_cache = fill_cache;
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options));
}

void OutboxDatabase::check(const rocksdb::Status& status) {
  if (status.ok()) return;
  const std::string text = name() + ": " + status.ToString();
  const bool gone = kv::is_unreadable(status) && read_errors_.lasts(ages_.now());
  if (!kv::is_damage(status) && !gone) throw OutboxError(text);
  damage_ = Damage{"outbox_unreadable", "a part of it cannot be read: " + status.ToString()};
  throw DamageFound(text);
}

void OutboxDatabase::fail_damaged(const std::string& what) {
  damage_ = Damage{"outbox_unreadable", what + " is damaged"};
  throw DamageFound(name() + ": " + damage_->text);
}

void OutboxDatabase::write(rocksdb::WriteBatch& batch, bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  const rocksdb::Status status = db_->Write(options, &batch);
  failed_ = failed_ || !status.ok();
  // A write that fails says nothing of what can be read.
  if (kv::is_unreadable(status)) throw OutboxError(name() + ": " + status.ToString());
  check(status);
}

void OutboxDatabase::keep(rocksdb::WriteBatch& batch, std::uint64_t last_position) {
  write(batch, /*sync=*/true);
  try {
    Watermark watermark = watermark_->last().value();
    watermark.position = last_position;
    watermark.time = ages_.now();
    watermark_->write(std::move(watermark));
  } catch (const OutboxError&) {
    failed_ = true;
    throw;
  }
  next_ = last_position + 1;
}

// In both slots: without it, what is pruned then would be missed.
void OutboxDatabase::settle(std::uint64_t position) {
  Watermark watermark = watermark_->last().value();
  watermark.settled = std::max(watermark.settled, std::min(position, watermark.position));
  watermark.time = ages_.now();
  watermark_->write_twice(watermark);
}

}  // namespace vigil::actors
