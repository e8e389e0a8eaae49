// Files that appear whole or not at all, and folders that stay.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace vigil::media {

/// What the names of files begin with that are still being written; a crash may leave them behind.
inline constexpr std::string_view kUnfinished = ".part-";

/// Makes a folder, and those above it that are missing; afterwards they survive a crash of the machine.
/// Throws `Error` with the folder's name and the system's reason.
void make_folders(const std::filesystem::path& folder);

/// A file that is written under another name in the same folder, until `commit` syncs it to the disk and
/// gives it its own.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path);
  /// Removes what was not committed.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Where to write.
  const std::filesystem::path& unfinished() const { return unfinished_; }

  /// Writes all of it. Throws `Error` with the file's name and the system's reason.
  void write(std::span<const unsigned char> bytes) const;

  /// Afterwards the file survives a crash of the machine. Throws `Error`.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
};

}  // namespace vigil::media
