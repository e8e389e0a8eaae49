#include "engine/kv/history/history_state.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/durable.h"
#include "engine/kv/history/erasure_file.h"
#include "engine/kv/history/store_format.h"

namespace vigil::history {
namespace {

namespace fs = std::filesystem;

/// Makes a state of what is there, and the changes of the index that follow.
class Loading {
 public:
  Loading(PartFiles& files, IndexDatabase& index, const std::optional<SecretKey>& master)
      : files_(files), listed_(files.list()), batch_(index), master_(master) {}

  void take_erasures(const HistoryFolder& folder, std::vector<Erasure> rows, bool index_lost) {
    auto& erasures = state_.catalog.erasures();
    if (auto kept = read_erasures(folder.erasures())) {
      erasures = std::move(kept->by_id);
      state_.next_erasure = kept->next;
    }
    std::set<std::uint64_t> in_index;
    for (Erasure& row : rows) {
      in_index.insert(row.id);
      const auto [entry, is_new] = erasures.try_emplace(row.id, row);
      if (!is_new) entry->second.finished = entry->second.finished && row.finished;
    }
    for (auto& [id, erasure] : erasures) {
      // Parts may be back.
      if (index_lost) erasure.finished = false;
      state_.next_erasure = std::max(state_.next_erasure, id + 1);
      if (!in_index.contains(id)) batch_.put_erasure(erasure);
    }
  }

  void take_keys(const std::vector<std::pair<HourKey, std::string>>& rows) {
    if (!master_) return;
    for (const auto& [hour, wrapped] : rows) {
      const auto key = unwrap(wrapped, *master_, wrapped_for(hour));
      if (key) state_.secrets[hour] = {std::make_shared<const SecretKey>(*key), wrapped};
    }
  }

  /// Behind the erasures, of which one may be known by its file alone. Rows that say nothing go.
  void take_notes(const std::vector<std::pair<CameraId, std::string>>& rows) {
    for (const auto& [camera, row] : rows) {
      auto notes = decode_notes(camera, row, master_ ? &*master_ : nullptr);
      if (notes) {
        state_.notes.emplace(camera, std::move(*notes));
      } else {
        batch_.remove_notes(camera);
      }
    }
    NoteChanges changes(state_.notes);
    changes.cut(state_.catalog.erasures());
    changes.put(batch_, master_);
    std::move(changes).settle(state_.notes);
  }

  void take_parts(const std::vector<IndexContent::Part>& rows, const std::set<std::uint64_t>& refused) {
    for (const IndexContent::Part& row : rows) {
      see(row.key.part);
      const auto secret = state_.secrets.find(row.key.hour);
      const auto key = secret == state_.secrets.end() ? nullptr : secret->second.key;
      const bool readable = master_.has_value() == (key != nullptr) && !refused.contains(row.key.part);
      auto entry = readable ? decode_entry(row.entry, encode(row.key), key.get()) : std::nullopt;
      const auto file = listed_.find(row.key.part);
      auto part = entry
                      ? stored_part(row.key, std::move(*entry), key, file == listed_.end() ? 0 : file->second)
                      : StoredPartPtr();
      if (!part || state_.catalog.has_any_of(*part)) {
        // If its file is whole, that says the same.
        batch_.remove_part(row.key);
        strange_.insert(row.key.part);
        continue;
      }
      known_.insert(row.key.part);
      state_.catalog.add(part);
    }
  }

  void take_files(const std::vector<std::uint64_t>& removed, const std::set<std::uint64_t>& refused) {
    state_.removed.insert(removed.begin(), removed.end());
    state_.removed.insert(refused.begin(), refused.end());
    std::map<std::uint64_t, Found> found;
    for (const auto& [part, bytes] : listed_) {
      see(part);
      if (known_.contains(part) || state_.removed.contains(part)) continue;
      try {
        if (auto whole = look_at(part, bytes)) {
          found.emplace(part, std::move(*whole));
        } else {
          state_.removed.insert(part);
        }
      } catch (const base::FileError&) {
        // Perhaps the next start can read it.
      }
    }
    for (const auto& [part, each] : found) {
      const auto is_there = [&](std::uint64_t other) {
        return known_.contains(other) || found.contains(other);
      };
      if (std::any_of(each.replaces.begin(), each.replaces.end(), is_there) ||
          state_.catalog.has_any_of(*each.part)) {
        state_.removed.insert(part);
      } else {
        adopt(each);
        strange_.erase(part);
      }
    }
    state_.removed.insert(strange_.begin(), strange_.end());
    for (const std::uint64_t part : state_.removed) see(part);
  }

  void take_last_pages(const std::vector<std::pair<CameraId, std::uint64_t>>& rows) {
    for (const auto& [camera, number] : rows) see_page(camera, number);
    const std::map<CameraId, std::uint64_t> before = state_.last_pages;
    for (const CameraId& camera : state_.catalog.cameras())
      for (const StoredPartPtr& part : state_.catalog.parts(camera))
        for (const StoredPage& page : part->pages) see_page(camera, page.number);
    for (const auto& [camera, number] : state_.last_pages) {
      const auto row = before.find(camera);
      if (row == before.end() || row->second != number) batch_.put_last_page(camera, number);
    }
  }

  IndexBatch& batch() { return batch_; }
  HistoryState finish() { return std::move(state_); }

 private:
  struct Found {
    StoredPartPtr part;
    std::vector<std::uint64_t> replaces;
    PartSecret secret;
    std::string entry;
  };

  void see(std::uint64_t part) { state_.next_part = std::max(state_.next_part, part + 1); }

  void see_page(const CameraId& camera, std::uint64_t number) {
    std::uint64_t& last = state_.last_pages[camera];
    last = std::max(last, number);
  }

  /// What a file says of itself, if it ends as one that was finished. Throws base::FileError.
  std::optional<Found> look_at(std::uint64_t part, std::uint64_t bytes) const {
    const auto text = files_.trailer(part, bytes);
    auto trailer = text ? decode_trailer(*text) : std::nullopt;
    const auto key = trailer ? decode_part_key(trailer->key) : std::nullopt;
    if (!key || key->part != part || master_.has_value() == trailer->wrapped.empty()) return std::nullopt;
    Found found;
    if (master_) {
      const auto secret = unwrap(trailer->wrapped, *master_, wrapped_for(key->hour));
      if (!secret) return std::nullopt;
      found.secret = {std::make_shared<const SecretKey>(*secret), trailer->wrapped};
    }
    auto entry = decode_entry(trailer->entry, trailer->key, found.secret.key.get());
    if (!entry || entry->record_bytes > bytes) return std::nullopt;
    found.replaces = std::move(entry->replaces);
    found.part = stored_part(*key, std::move(*entry), found.secret.key, bytes);
    if (!found.part) return std::nullopt;
    found.entry = std::move(trailer->entry);
    return found;
  }

  void adopt(const Found& found) {
    const PartKey& key = found.part->key;
    state_.catalog.add(found.part);
    batch_.put_part(key, found.entry);
    batch_.forget_removed(key.part);
    if (!master_ || !state_.secrets.try_emplace(key.hour, found.secret).second) return;
    batch_.put_key(key.hour, found.secret.wrapped);
  }

  PartFiles& files_;
  std::map<std::uint64_t, std::uint64_t> listed_;
  IndexBatch batch_;
  const std::optional<SecretKey>& master_;
  std::set<std::uint64_t> known_;
  /// Those whose rows in the index say nothing.
  std::set<std::uint64_t> strange_;
  HistoryState state_;
};

/// The file's text, or the index's, whichever is unharmed; a new one for a folder that has neither.
void settle_format(const HistoryFolder& folder, const std::optional<std::string>& row, bool is_new,
                   const std::optional<SecretKey>& master, IndexBatch& batch) {
  const std::string name = "history " + folder.path.string();
  std::ifstream stream(folder.format(), std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  std::string format = text.str();
  const bool whole = is_format(format);
  if (!whole && row && is_format(*row)) format = *row;
  if (!is_format(format)) {
    if (!is_new) throw HistoryError(name + ": what says how it is encrypted (HISTORY) is damaged or gone");
    format = new_format(master);
  }
  check_format(format, master, name);
  std::string newest = of_newest_layout(format);
  if (!whole || newest != format) {
    format = std::move(newest);
    base::NewFile file(folder.format());
    file.write(format);
    file.commit();
  }
  if (row != format) batch.put_format(format);
}

}  // namespace

HistoryFolder make_history_folder(const fs::path& path) {
  HistoryFolder folder{path};
  base::make_folders(folder.parts());
  fs::permissions(path, fs::perms::owner_all);
  return folder;
}

void check_space(const HistoryFolder& folder, std::uint64_t bytes, std::uintmax_t keep_free) {
  std::error_code error;
  const auto space = fs::space(folder.path, error);
  if (error || space.available >= bytes + keep_free) return;
  throw HistoryError("history " + folder.path.string() + ": no space left on the disk (" +
                     std::to_string(space.available >> 20U) + " MiB; " + std::to_string(keep_free >> 20U) +
                     " MiB are kept free)");
}

base::Descriptor lock_history(const HistoryFolder& folder) {
  base::Descriptor lock = base::open_file(folder.lock(), O_RDWR | O_CREAT, S_IRUSR | S_IWUSR);
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
    throw HistoryError("history " + folder.path.string() + ": is locked: another process has it open");
  }
  return lock;
}

OpenedHistory open_history(const HistoryFolder& folder, PartFiles& files,
                           const std::optional<SecretKey>& master, const std::set<std::uint64_t>& refused) {
  OpenedHistory opened;
  IndexContent content;
  bool index_lost = !fs::exists(folder.index() / "CURRENT");
  try {
    opened.index = std::make_unique<IndexDatabase>(folder.index());
    content = opened.index->content();
  } catch (const IndexDamaged&) {
    opened.index.reset();
    content = {};
    index_lost = true;
    std::error_code error;
    fs::remove_all(folder.index(), error);
    if (error) throw base::FileError(folder.index(), "cannot remove", error.value());
    base::sync(folder.path);
    opened.index = std::make_unique<IndexDatabase>(folder.index());
  }
  Loading loading(files, *opened.index, master);
  settle_format(folder, content.format, content.parts.empty() && files.list().empty(), master,
                loading.batch());
  loading.take_erasures(folder, std::move(content.erasures), index_lost);
  loading.take_notes(content.notes);
  loading.take_keys(content.keys);
  loading.take_parts(content.parts, refused);
  loading.take_files(content.removed, refused);
  loading.take_last_pages(content.last_pages);
  if (!loading.batch().empty()) opened.index->write(loading.batch());
  opened.state = loading.finish();
  return opened;
}

}  // namespace vigil::history
