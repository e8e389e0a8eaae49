// Files and folders that are still there after the power was cut.
#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string_view>

#include <sys/types.h>

#include "base/descriptor.h"

namespace vigil::base {

/// What could not be done with a file or a folder: "PATH: WHAT: REASON".
class FileError : public std::runtime_error {
 public:
  FileError(const std::filesystem::path& path, std::string_view what, int code);
  /// The system's number of the reason (errno).
  int code() const { return code_; }

 private:
  int code_;
};

/// Opens as open(2) does, and again where a signal came; programs that are started do not inherit it. Throws
/// `FileError`.
Descriptor open_file(const std::filesystem::path& path, int flags, mode_t mode = 0);

/// Syncs a file's bytes, or the names in a folder, to the disk; "" is the folder that the process is in. File
/// systems that know no such thing are passed over. Throws `FileError`.
void sync(const std::filesystem::path& path);

/// Makes a folder, and those that are missing on the way to it, each synced in the one above unless only
/// others may list that. Throws `FileError`.
void make_folders(const std::filesystem::path& folder);

/// Writes a file that there must not be yet, with its name and all of its bytes synced. Throws `FileError`;
/// what was written until then stays.
void write_first(const std::filesystem::path& path, std::string_view text, mode_t mode);

/// What the names of files begin with that are still being written; a crash may leave them behind.
inline constexpr std::string_view kUnfinished = ".part-";

/// A file that is written under another name in the same folder, until `commit` syncs it to the disk and
/// gives it its own: it appears whole or not at all. Not thread-safe.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path);
  /// Removes what was not committed.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Where to write.
  const std::filesystem::path& unfinished() const { return unfinished_; }

  /// Writes all of it. Throws `FileError`.
  void write(std::span<const unsigned char> bytes) const;
  void write(std::string_view text) const;

  /// Afterwards the file survives a crash of the machine. Throws `FileError`.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
};

}  // namespace vigil::base
