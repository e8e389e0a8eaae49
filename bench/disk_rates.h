// What a disk does with files of values: by this process with direct I/O alone, and by `fio`. The floor of
// whatever else lies on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace vigil::bench {

/// `files` files of `file_bytes` in `folder`, of values of `value_bytes` each, both multiples of 4096.
struct DiskLayout {
  std::filesystem::path folder;
  std::size_t value_bytes = 0;
  std::size_t file_bytes = 0;
  std::size_t files = 0;

  std::size_t values() const { return file_bytes / value_bytes; }
  double bytes() const { return static_cast<double>(files * values() * value_bytes); }
};

/// Bytes a second, where `work` writes or reads all values.
double rate_of(const DiskLayout& layout, const base::Clock& clock, const std::function<void()>& work);
/// The same of `read`, called once for each file by so many threads; rethrows what one of them throws.
double read_rate(const DiskLayout& layout, int threads, const base::Clock& clock,
                 const std::function<void(std::size_t file)>& read);

// Bytes a second. Writers sync each file; readers read every value once, in a shuffled order (`order_of`), by
// so many threads. They throw base::FileError if the disk does not do what it should; a disk without direct
// I/O does not.
double write_plain(const DiskLayout& layout, std::span<const std::byte> value, const base::Clock& clock);
double read_plain(const DiskLayout& layout, int threads, const base::Clock& clock);

/// Whether the program `fio` can be started.
bool has_fio();
/// By `fio` with the same sizes, depth and direct I/O, from its own report. It makes files of its own in the
/// folder. They throw std::runtime_error with what it says where it does not do so.
double write_fio(const DiskLayout& layout);
double read_fio(const DiskLayout& layout, int threads);

/// In which the values of a file are read, [values].
std::vector<std::size_t> order_of(const DiskLayout& layout, std::size_t file);

/// Bytes that this process has given to the disk (`storage`), and to write calls (`calls`): as the system
/// counts them in /proc/self/io, with all of its threads. `io`: in the layout of that. Throws
/// std::runtime_error where it does not tell.
struct WrittenBytes {
  std::uint64_t storage = 0;
  std::uint64_t calls = 0;
};
WrittenBytes written_bytes(const std::filesystem::path& io = "/proc/self/io");

/// Has the system forget what it holds of all files in this folder, as far as it can: what is read next comes
/// from the disk. Throws base::FileError.
void drop_cache(const std::filesystem::path& folder);

/// Bytes of the files in it, and in the folders in it.
std::uint64_t folder_bytes(const std::filesystem::path& folder);

}  // namespace vigil::bench
