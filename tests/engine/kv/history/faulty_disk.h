// A disk that does what a test wants. It stands between the store (and RocksDB) and the system, so it is for
// one source of a program.
#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vigil::history::testing {

/// What the disk under one folder does. Thread-safe: RocksDB has threads of its own.
struct Disk {
  /// Only what is in it counts.
  std::string folder;
  /// From this change of a file or a folder on (0: the next one), counted down; negative: never.
  std::atomic<long> countdown{-1};
  /// All fail so; or, if it is 0, the process is killed.
  std::atomic<int> error{0};
  std::atomic<bool> unreadable{false};
  std::atomic<long> calls{0};
  std::atomic<std::uint64_t> bytes{0};

  bool has(int descriptor) const {
    if (folder.empty()) return false;
    char path[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
    return size > 0 && std::string_view(path, static_cast<std::size_t>(size)).starts_with(folder);
  }
  bool has(const char* path) const { return !folder.empty() && std::string_view(path).starts_with(folder); }

  /// Whether this change fails; errno says how.
  bool fails() {
    ++calls;
    if (countdown.load() < 0) return false;
    if (countdown.load() > 0) {
      --countdown;
      return false;
    }
    if (error == 0) ::kill(::getpid(), SIGKILL);
    errno = error;
    return true;
  }
  bool reading_fails(int descriptor) const {
    if (!unreadable || !has(descriptor)) return false;
    errno = EIO;
    return true;
  }
};

inline Disk& disk() {
  static Disk one;
  return one;
}

}  // namespace vigil::history::testing

// In place of the C library's.
extern "C" ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  if (vigil::history::testing::disk().has(descriptor)) {
    if (vigil::history::testing::disk().fails()) return -1;
    vigil::history::testing::disk().bytes += count;
  }
  return ::syscall(SYS_pwrite64, descriptor, bytes, count, offset);
}

extern "C" ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t offset) {
  return pwrite(descriptor, bytes, count, offset);
}

extern "C" ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (vigil::history::testing::disk().has(descriptor)) {
    if (vigil::history::testing::disk().fails()) return -1;
    vigil::history::testing::disk().bytes += count;
  }
  return ::syscall(SYS_write, descriptor, bytes, count);
}

extern "C" ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  if (vigil::history::testing::disk().reading_fails(descriptor)) return -1;
  return ::syscall(SYS_pread64, descriptor, bytes, count, offset);
}

extern "C" int fdatasync(int descriptor) {
  if (vigil::history::testing::disk().has(descriptor) && vigil::history::testing::disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

extern "C" int fsync(int descriptor) {
  if (vigil::history::testing::disk().has(descriptor) && vigil::history::testing::disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (vigil::history::testing::disk().has(to) && vigil::history::testing::disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

extern "C" int unlink(const char* path) noexcept {
  if (vigil::history::testing::disk().has(path) && vigil::history::testing::disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_unlink, path));
}

extern "C" int remove(const char* path) noexcept {
  if (vigil::history::testing::disk().has(path) && vigil::history::testing::disk().fails()) return -1;
  const long removed = ::syscall(SYS_unlink, path);
  return removed != 0 && errno == EISDIR ? static_cast<int>(::syscall(SYS_rmdir, path))
                                         : static_cast<int>(removed);
}

extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_CREAT) != 0 && vigil::history::testing::disk().has(path) &&
      vigil::history::testing::disk().fails())
    return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
