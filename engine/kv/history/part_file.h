// The files of parts: written once, front to back, past the system's cache, and read the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace vigil::history {

/// What direct I/O wants of addresses, offsets and lengths.
inline constexpr std::size_t kBlock = 4096;

/// Memory that begins at a multiple of `kBlock`. Move-only.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  /// Not cleared. Throws std::bad_alloc.
  explicit AlignedBytes(std::size_t bytes);

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// A new file. What it is given stands in it one after the other, each beginning at a multiple of
/// `kRecordAlignment`; an end of zeros fills the last block, before what `finish` adds. Throws
/// base::FileError; then, and if it is never finished, the file goes. Not thread-safe.
class PartWriter {
 public:
  /// `buffer`: what it works in, of any size; it may be used again afterwards, which spares the system to
  /// clear it for each file.
  PartWriter(std::filesystem::path file, AlignedBytes& buffer);
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  /// Room for so many bytes, a multiple of `kRecordAlignment`, that are to be filled before the next call.
  std::span<std::byte> append(std::size_t bytes);
  /// Of what was appended.
  std::uint64_t bytes() const { return written_ + used_; }
  /// The file ends with this, and all of it lies on the disk; its name in the folder is the caller's to sync.
  void finish(std::string_view trailer);
  /// All that was written to the file.
  std::uint64_t file_bytes() const { return written_; }

 private:
  void write_blocks();

  std::filesystem::path file_;
  base::Descriptor descriptor_;
  AlignedBytes& buffer_;
  std::size_t used_ = 0;
  std::uint64_t written_ = 0;
  bool finished_ = false;
};

/// A stretch of a file, within memory that is a little larger.
struct Stretch {
  AlignedBytes memory;
  std::span<std::byte> bytes;
};

/// The files of a folder, "NUMBER.part", of which some are kept open. Thread-safe. Throws base::FileError.
class PartFiles {
 public:
  /// `most_open`: descriptors that are kept at most.
  PartFiles(std::filesystem::path folder, std::size_t most_open);

  std::filesystem::path path_of(std::uint64_t part) const;
  const std::filesystem::path& folder() const { return folder_; }
  /// Numbers and sizes of those that are there. What has another name is left alone.
  std::map<std::uint64_t, std::uint64_t> list() const;

  /// Nothing if the file ends before.
  std::optional<Stretch> read(std::uint64_t part, std::uint64_t offset, std::size_t bytes) const;
  /// As it was when the file was finished; nothing if there is none.
  std::optional<std::string> trailer(std::uint64_t part, std::uint64_t file_bytes) const;

  /// It may be gone already. The folder is the caller's to sync.
  void remove(std::uint64_t part);
  std::size_t open_files() const;

 private:
  using Opened = std::shared_ptr<const base::Descriptor>;

  Opened open(std::uint64_t part) const;

  std::filesystem::path folder_;
  std::size_t most_open_;
  mutable std::mutex mutex_;
  /// The last one that was used first.
  mutable std::list<std::pair<std::uint64_t, Opened>> opened_;
  mutable std::map<std::uint64_t, std::list<std::pair<std::uint64_t, Opened>>::iterator> places_;
  std::uint64_t removed_ = 0;
};

}  // namespace vigil::history
