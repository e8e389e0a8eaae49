// What a store knows when it has been opened, made of its index and of the files of parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/descriptor.h"
#include "engine/kv/history/catalog.h"
#include "engine/kv/history/index_database.h"
#include "engine/kv/history/note_changes.h"
#include "engine/kv/history/part_file.h"
#include "engine/kv/history/part_maker.h"

namespace vigil::history {

struct HistoryState {
  Catalog catalog;
  /// By which the next part of an hour is encrypted.
  std::map<HourKey, PartSecret> secrets;
  std::map<CameraId, std::uint64_t> last_pages;
  CameraNotes notes;
  std::uint64_t next_part = 1;
  std::uint64_t next_erasure = 1;
  /// Parts that count no more, and whose files may still be there.
  std::set<std::uint64_t> removed;
};

/// Where things are in a store's folder.
struct HistoryFolder {
  std::filesystem::path path;

  std::filesystem::path parts() const { return path / "parts"; }
  std::filesystem::path index() const { return path / "index"; }
  std::filesystem::path erasures() const { return path / "ERASURES"; }
  std::filesystem::path format() const { return path / "HISTORY"; }
  std::filesystem::path lock() const { return path / "LOCK"; }
};

/// Makes it, or has it be its owner's alone: what is there is what cameras saw. Throws base::FileError, and
/// std::filesystem::filesystem_error.
HistoryFolder make_history_folder(const std::filesystem::path& path);
/// Throws HistoryError if so many bytes more would leave less than `keep_free` of the disk.
void check_space(const HistoryFolder& folder, std::uint64_t bytes, std::uintmax_t keep_free);
/// Whoever has the descriptor has the folder. Throws HistoryError if somebody has, and base::FileError.
base::Descriptor lock_history(const HistoryFolder& folder);

struct OpenedHistory {
  std::unique_ptr<IndexDatabase> index;
  HistoryState state;
};

/// The index says what counts. A part that it does not know, and was not told to remove, is one whose entry
/// was lost, or that was being put: if it is whole, it joins; and if it was made of another one that is still
/// there, it goes, and that one stays. So an index that is damaged or gone costs nothing but hours that were
/// retired and not yet removed. Of parts whose files are gone or too short, the pages stay known as damaged.
/// `refused`: parts that must not count, whatever the index says. Throws HistoryError, and base::FileError.
OpenedHistory open_history(const HistoryFolder& folder, PartFiles& files,
                           const std::optional<SecretKey>& master, const std::set<std::uint64_t>& refused);

}  // namespace vigil::history
