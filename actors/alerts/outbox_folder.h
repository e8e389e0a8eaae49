// The outbox's folder: whose it is, where the database lies in it, and what was set aside as damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// Folders of damaged files that are kept; beyond, the oldest go.
inline constexpr std::size_t kDamagedKept = 3;

/// As base::sync. Throws OutboxError.
void sync_folder(const std::filesystem::path& folder);

/// The database is in the folder itself, or, once that was damaged, in a subfolder `store-N`; the one with
/// the highest number counts. What is being made has ".tmp" behind its name, and becomes the database at once
/// by being renamed. Functions throw OutboxError. Not thread-safe.
class OutboxFolder {
 public:
  /// Makes it if it is missing.
  explicit OutboxFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }

  /// Has it be the owner's alone, with all in it that is the outbox's; says why if it could not. A folder in
  /// which others keep files as well is left alone.
  std::optional<std::string> make_private() const;

  std::filesystem::path database() const;
  /// Whether anything was ever written there: a database that was only begun is none.
  bool has_database() const;
  /// Bytes of its files.
  std::uintmax_t database_bytes() const;

  /// Where the next one is to be made: an empty folder.
  std::filesystem::path make_next() const;
  /// An empty folder that is removed at the next start.
  std::filesystem::path make_scratch() const;
  /// What was made is the database from now on.
  void replace(const std::filesystem::path& next) const;
  /// Removes what was not finished, and sets aside a database that was replaced; returns where.
  std::optional<std::filesystem::path> tidy(base::Clock::WallTime now) const;

  /// Folders of damaged files, the oldest first.
  std::vector<std::filesystem::path> damaged() const;
  /// Removes the oldest of them, but for this one; nothing if there is none.
  std::optional<std::filesystem::path> forget_damaged(const std::filesystem::path& kept = {}) const;

 private:
  [[noreturn]] void fail(const std::string& what, const std::error_code& error) const;
  std::filesystem::path set_aside(const std::filesystem::path& database, base::Clock::WallTime now) const;

  std::filesystem::path path_;
};

}  // namespace vigil::actors
