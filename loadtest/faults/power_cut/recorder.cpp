// A library for LD_PRELOAD that writes down what a process does to the files of one folder, so that disk.py
// can tell what a power cut would have left of them, and that ends the process at the operation it is told.
//
//   POWER_CUT_ROOT     the folder, an absolute path without links
//   POWER_CUT_JOURNAL  where operations are written down, outside of it (records: see `Record`)
//   POWER_CUT_BEFORE   the process is killed before its operation of this number, from 0; never if it is
//   unset POWER_CUT_LINGER   so many milliseconds later, for what the process has sent to get away
//
// Operations go one after the other, each with its record. A sync is only recorded: no disk is needed to
// tell what it would have kept. What it does not see are writes that the C library makes within itself
// (fwrite, dprintf): disk.py compares its own result with the folder, so that they do not go unnoticed.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <string_view>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum Kind : std::uint32_t {
  kMake = 1,    // path: a new file of this number (a: its mode)
  kMakeFolder,  // path: the same of a folder
  kWrite,       // a: offset; the bytes follow
  kResize,      // a: size
  kSync,        // a: 1 if only for the data
  kSyncAll,
  kRemove,        // path
  kRemoveFolder,  // path
  kRename,        // path, second path
  kLink,          // path, second path
  kMode,          // a: mode
  kRefused,       // path: what for
  kCut,
};

/// What stands before the first path, the second path and the data.
struct Record {
  std::uint32_t kind = 0;
  std::uint32_t path = 0;
  std::uint32_t second = 0;
  std::uint32_t padding = 0;
  std::uint64_t file = 0;
  std::int64_t a = 0;
  std::uint64_t data = 0;
};
static_assert(sizeof(Record) == 40);

constexpr int kMostDescriptors = 1 << 16;

struct State {
  std::string root;
  int journal = -1;
  long before = -1;
  long linger = 0;
  long count = 0;
  std::recursive_mutex mutex;
  // 0: not of the folder, 1: is, 3: every write is synced.
  unsigned char tracked[kMostDescriptors] = {};
};

State* make_state() {
  auto* state = new State;
  const char* root = std::getenv("POWER_CUT_ROOT");
  const char* journal = std::getenv("POWER_CUT_JOURNAL");
  if (root == nullptr || journal == nullptr) return state;
  state->root = root;
  const long opened =
      ::syscall(SYS_openat, AT_FDCWD, journal, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  // Away from the numbers that the process uses.
  state->journal = static_cast<int>(::syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 900));
  ::syscall(SYS_close, opened);
  if (state->journal < 0) std::abort();
  if (const char* before = std::getenv("POWER_CUT_BEFORE")) state->before = std::atol(before);
  if (const char* linger = std::getenv("POWER_CUT_LINGER")) state->linger = std::atol(linger);
  return state;
}

/// Never destroyed: other threads may write until the end.
State& state() {
  static State* const the = make_state();
  return *the;
}

template <class... T>
long call(long number, T... arguments) {
  return ::syscall(number, arguments...);
}

void record(Kind kind, std::uint64_t file, std::int64_t a, std::string_view path = {},
            std::string_view second = {}, std::string_view data = {}) {
  Record head;
  head.kind = kind;
  head.path = static_cast<std::uint32_t>(path.size());
  head.second = static_cast<std::uint32_t>(second.size());
  head.file = file;
  head.a = a;
  head.data = data.size();
  const iovec parts[] = {{&head, sizeof(head)},
                         {const_cast<char*>(path.data()), path.size()},
                         {const_cast<char*>(second.data()), second.size()},
                         {const_cast<char*>(data.data()), data.size()}};
  const auto whole = static_cast<long>(sizeof(head) + path.size() + second.size() + data.size());
  if (call(SYS_writev, state().journal, parts, 4) != whole) std::abort();
}

/// Held while an operation of the folder runs; does not return where the power is cut.
class Operation {
 public:
  Operation() : lock_(state().mutex) {
    State& the = state();
    if (the.before >= 0 && the.count >= the.before) {
      const timespec linger = {the.linger / 1000, the.linger % 1000 * 1'000'000};
      ::nanosleep(&linger, nullptr);
      record(kCut, 0, the.count);
      ::kill(::getpid(), SIGKILL);
      for (;;) ::pause();
    }
    ++the.count;
  }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

std::string link_of(int descriptor) {
  char name[64];
  char path[PATH_MAX];
  std::snprintf(name, sizeof(name), "/proc/self/fd/%d", descriptor);
  const long length = call(SYS_readlink, name, path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

/// An absolute path without ".", ".." and double slashes; links are not followed.
std::string absolute(int folder, const char* name) {
  std::string path = name;
  if (path.empty() || path.front() != '/') {
    if (folder == AT_FDCWD) {
      char working[PATH_MAX];
      path = (call(SYS_getcwd, working, sizeof(working)) > 0 ? std::string(working) : "") + '/' + path;
    } else {
      path = link_of(folder) + '/' + path;
    }
  }
  std::string result;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    if (part == "..") {
      result.erase(std::min(result.rfind('/'), result.size()));
    } else if (!part.empty() && part != ".") {
      result += '/';
      result += part;
    }
    begin = end + 1;
  }
  return result;
}

/// The path within the folder ("" is itself), if it is there.
bool within(const std::string& path, std::string& inner) {
  const std::string& root = state().root;
  if (root.empty() || path.compare(0, root.size(), root) != 0) return false;
  if (path.size() > root.size() && path[root.size()] != '/') return false;
  inner = path.size() > root.size() ? path.substr(root.size() + 1) : std::string();
  return true;
}

bool within(int folder, const char* name, std::string& inner) {
  return name != nullptr && !state().root.empty() && within(absolute(folder, name), inner);
}

unsigned char tracked(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors ? state().tracked[descriptor] : 0;
}

void track(long descriptor, unsigned char how) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) state().tracked[descriptor] = how;
}

std::uint64_t number_of(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) std::abort();
  return status.st_ino;
}

std::uint64_t number_of(int folder, const char* name, bool& there) {
  struct stat status = {};
  there = ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
  return there ? status.st_ino : 0;
}

long open_at(int folder, const char* name, int flags, mode_t mode) {
  std::string inner;
  if (!within(folder, name, inner)) {
    const long descriptor = call(SYS_openat, folder, name, flags, mode);
    track(descriptor, 0);
    return descriptor;
  }
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const unsigned char how = (flags & O_DSYNC) != 0 ? 3 : 1;
  if (!writes && (flags & O_CREAT) == 0) {
    const long descriptor = call(SYS_openat, folder, name, flags, mode);
    track(descriptor, how);
    return descriptor;
  }
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    record(kRefused, 0, 0, "O_TMPFILE");
    errno = EOPNOTSUPP;
    return -1;
  }
  const Operation operation;
  bool there = false;
  number_of(folder, name, there);
  const long descriptor = call(SYS_openat, folder, name, flags, mode);
  track(descriptor, how);
  if (descriptor < 0) return descriptor;
  const int error = errno;
  if (!there) {
    struct stat status = {};
    ::fstat(static_cast<int>(descriptor), &status);
    record(kMake, status.st_ino, status.st_mode & 07777, inner);
  } else if ((flags & O_TRUNC) != 0) {
    record(kResize, number_of(static_cast<int>(descriptor)), 0);
  }
  errno = error;
  return descriptor;
}

/// After a write of the bytes at an offset.
void wrote(int descriptor, std::int64_t offset, const iovec* parts, int count, long written) {
  std::string bytes;
  for (int i = 0; i < count && bytes.size() < static_cast<std::size_t>(written); ++i) {
    bytes.append(static_cast<const char*>(parts[i].iov_base),
                 std::min(parts[i].iov_len, static_cast<std::size_t>(written) - bytes.size()));
  }
  const std::uint64_t file = number_of(descriptor);
  record(kWrite, file, offset, {}, {}, bytes);
  if (tracked(descriptor) == 3) record(kSync, file, 1);
}

long write_at(int descriptor, const iovec* parts, int count, std::int64_t offset) {
  const Operation operation;
  const bool appends = (call(SYS_fcntl, descriptor, F_GETFL) & O_APPEND) != 0;
  std::int64_t at = offset;
  if (appends) {
    struct stat status = {};
    ::fstat(descriptor, &status);
    at = status.st_size;
  } else if (offset < 0) {
    at = call(SYS_lseek, descriptor, 0, SEEK_CUR);
  }
  const long written = offset < 0 ? call(SYS_writev, descriptor, parts, count)
                                  : call(SYS_pwritev, descriptor, parts, count, offset, 0);
  if (written > 0) wrote(descriptor, at, parts, count, written);
  return written;
}

int resize(int descriptor, std::int64_t size) {
  const Operation operation;
  const long result = call(SYS_ftruncate, descriptor, size);
  if (result == 0) record(kResize, number_of(descriptor), size);
  return static_cast<int>(result);
}

int sync(int descriptor, int data_only) {
  const Operation operation;
  record(kSync, number_of(descriptor), data_only);
  return 0;
}

int remove_at(int folder, const char* name, int flags) {
  std::string inner;
  if (!within(folder, name, inner)) return static_cast<int>(call(SYS_unlinkat, folder, name, flags));
  const Operation operation;
  const long result = call(SYS_unlinkat, folder, name, flags);
  if (result == 0) record((flags & AT_REMOVEDIR) != 0 ? kRemoveFolder : kRemove, 0, 0, inner);
  return static_cast<int>(result);
}

int two_paths(Kind kind, long number, int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) {
  std::string inner_from;
  std::string inner_to;
  const bool in = within(from_folder, from, inner_from);
  const bool out = within(to_folder, to, inner_to);
  if (!in && !out) return static_cast<int>(call(number, from_folder, from, to_folder, to, flags));
  if (in != out || (kind == kRename && (flags & ~1U) != 0)) {
    record(kRefused, 0, 0, "rename or link across the folder's border");
    errno = EXDEV;
    return -1;
  }
  const Operation operation;
  const long result = call(number, from_folder, from, to_folder, to, flags);
  if (result == 0) record(kind, 0, 0, inner_from, inner_to);
  return static_cast<int>(result);
}

int make_folder(int folder, const char* name, mode_t mode) {
  std::string inner;
  if (!within(folder, name, inner)) return static_cast<int>(call(SYS_mkdirat, folder, name, mode));
  const Operation operation;
  const long result = call(SYS_mkdirat, folder, name, mode);
  if (result == 0) {
    bool there = false;
    const std::uint64_t number = number_of(folder, name, there);
    record(kMakeFolder, number, mode & 07777, inner);
  }
  return static_cast<int>(result);
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

int flags_of(const char* mode) {
  const bool both = std::strchr(mode, '+') != nullptr;
  const int access = both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  const int creates = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
  return access | creates | (std::strchr(mode, 'x') != nullptr ? O_EXCL : 0) |
         (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
}

}  // namespace

extern "C" {

int open(const char* name, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return static_cast<int>(open_at(AT_FDCWD, name, flags, mode));
}
int open64(const char* name, int flags, ...) __attribute__((alias("open")));

int openat(int folder, const char* name, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return static_cast<int>(open_at(folder, name, flags, mode));
}
int openat64(int folder, const char* name, int flags, ...) __attribute__((alias("openat")));

// What these calls become where the C library checks them (_FORTIFY_SOURCE).
int __open_2(const char* name, int flags) {
  return static_cast<int>(open_at(AT_FDCWD, name, flags, 0));
}
int __open64_2(const char* name, int flags) __attribute__((alias("__open_2")));
int __openat_2(int folder, const char* name, int flags) {
  return static_cast<int>(open_at(folder, name, flags, 0));
}
int __openat64_2(int folder, const char* name, int flags) __attribute__((alias("__openat_2")));

int creat(const char* name, mode_t mode) {
  return static_cast<int>(open_at(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, mode));
}
int creat64(const char* name, mode_t mode) __attribute__((alias("creat")));

// What is written through the FILE itself is not seen; std::ofstream writes to the descriptor.
FILE* fopen(const char* name, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen");
  std::string inner;
  if (mode[0] == 'r' && std::strchr(mode, '+') == nullptr) return real(name, mode);
  if (!within(AT_FDCWD, name, inner)) return real(name, mode);
  const long descriptor = open_at(AT_FDCWD, name, flags_of(mode), 0666);
  return descriptor < 0 ? nullptr : ::fdopen(static_cast<int>(descriptor), mode);
}
FILE* fopen64(const char* name, const char* mode) __attribute__((alias("fopen")));

int fclose(FILE* file) {
  static const auto real = next<int (*)(FILE*)>("fclose");
  track(::fileno(file), 0);
  return real(file);
}

int closedir(DIR* folder) {
  static const auto real = next<int (*)(DIR*)>("closedir");
  track(::dirfd(folder), 0);
  return real(folder);
}

int close(int descriptor) {
  track(descriptor, 0);
  return static_cast<int>(call(SYS_close, descriptor));
}

int dup(int descriptor) {
  const long result = call(SYS_dup, descriptor);
  track(result, tracked(descriptor));
  return static_cast<int>(result);
}
int dup3(int descriptor, int to, int flags) {
  const long result = call(SYS_dup3, descriptor, to, flags);
  if (result >= 0) track(result, tracked(descriptor));
  return static_cast<int>(result);
}
int dup2(int descriptor, int to) {
  if (descriptor == to) return static_cast<int>(call(SYS_dup2, descriptor, to));
  return dup3(descriptor, to, 0);
}
int fcntl(int descriptor, int command, ...) {
  std::va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  const long result = call(SYS_fcntl, descriptor, command, argument);
  if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) track(result, tracked(descriptor));
  return static_cast<int>(result);
}
int fcntl64(int descriptor, int command, ...) __attribute__((alias("fcntl")));

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  if (tracked(descriptor) == 0) return call(SYS_write, descriptor, bytes, size);
  const iovec part = {const_cast<void*>(bytes), size};
  return write_at(descriptor, &part, 1, -1);
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (tracked(descriptor) == 0) return call(SYS_writev, descriptor, parts, count);
  return write_at(descriptor, parts, count, -1);
}
ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset) {
  if (tracked(descriptor) == 0) return call(SYS_pwrite64, descriptor, bytes, size, offset);
  const iovec part = {const_cast<void*>(bytes), size};
  return write_at(descriptor, &part, 1, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t size, off_t offset)
    __attribute__((alias("pwrite")));
ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset) {
  if (tracked(descriptor) == 0) return call(SYS_pwritev, descriptor, parts, count, offset, 0);
  return write_at(descriptor, parts, count, offset);
}
ssize_t pwritev64(int descriptor, const iovec* parts, int count, off_t offset)
    __attribute__((alias("pwritev")));

// Callers have another way where these are refused.
ssize_t sendfile(int to, int from, off_t* offset, std::size_t size) {
  if (tracked(to) == 0) return call(SYS_sendfile, to, from, offset, size);
  errno = EINVAL;
  return -1;
}
ssize_t sendfile64(int to, int from, off_t* offset, std::size_t size) __attribute__((alias("sendfile")));
ssize_t copy_file_range(int from, off_t* from_offset, int to, off_t* to_offset, std::size_t size,
                        unsigned flags) {
  if (tracked(to) == 0) return call(SYS_copy_file_range, from, from_offset, to, to_offset, size, flags);
  errno = EINVAL;
  return -1;
}
void* mmap(void* address, std::size_t size, int protection, int flags, int descriptor, off_t offset) {
  if (tracked(descriptor) != 0 && (flags & MAP_TYPE) != MAP_PRIVATE && (protection & PROT_WRITE) != 0) {
    record(kRefused, 0, 0, "writing to a file in memory (mmap)");
    errno = ENODEV;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(call(SYS_mmap, address, size, protection, flags, descriptor, offset));
}
void* mmap64(void* address, std::size_t size, int protection, int flags, int descriptor, off_t offset)
    __attribute__((alias("mmap")));

int ftruncate(int descriptor, off_t size) {
  if (tracked(descriptor) == 0) return static_cast<int>(call(SYS_ftruncate, descriptor, size));
  return resize(descriptor, size);
}
int ftruncate64(int descriptor, off_t size) __attribute__((alias("ftruncate")));
int truncate(const char* name, off_t size) {
  std::string inner;
  if (!within(AT_FDCWD, name, inner)) return static_cast<int>(call(SYS_truncate, name, size));
  const Operation operation;
  const long result = call(SYS_truncate, name, size);
  bool there = false;
  const std::uint64_t number = number_of(AT_FDCWD, name, there);
  if (result == 0) record(kResize, number, size);
  return static_cast<int>(result);
}
int truncate64(const char* name, off_t size) __attribute__((alias("truncate")));
int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  if (tracked(descriptor) == 0) return static_cast<int>(call(SYS_fallocate, descriptor, mode, offset, size));
  // Room alone changes nothing that can be read.
  if (mode == FALLOC_FL_KEEP_SIZE) return 0;
  struct stat status = {};
  ::fstat(descriptor, &status);
  if (mode == 0) return offset + size > status.st_size ? resize(descriptor, offset + size) : 0;
  errno = EOPNOTSUPP;
  return -1;
}
int fallocate64(int descriptor, int mode, off_t offset, off_t size) __attribute__((alias("fallocate")));
int posix_fallocate(int descriptor, off_t offset, off_t size) {
  return fallocate(descriptor, 0, offset, size) == 0 ? 0 : errno;
}
int posix_fallocate64(int descriptor, off_t offset, off_t size) __attribute__((alias("posix_fallocate")));

int fsync(int descriptor) {
  if (tracked(descriptor) == 0) return static_cast<int>(call(SYS_fsync, descriptor));
  return sync(descriptor, 0);
}
int fdatasync(int descriptor) {
  if (tracked(descriptor) == 0) return static_cast<int>(call(SYS_fdatasync, descriptor));
  return sync(descriptor, 1);
}
// Promises nothing about a power cut: it neither waits for the disk's cache nor keeps the size.
int sync_file_range(int descriptor, off64_t offset, off64_t size, unsigned flags) {
  if (tracked(descriptor) == 0) {
    return static_cast<int>(call(SYS_sync_file_range, descriptor, offset, size, flags));
  }
  return 0;
}
int syncfs(int descriptor) {
  if (tracked(descriptor) == 0) return static_cast<int>(call(SYS_syncfs, descriptor));
  const Operation operation;
  record(kSyncAll, 0, 0);
  return 0;
}

int unlink(const char* name) {
  return remove_at(AT_FDCWD, name, 0);
}
int unlinkat(int folder, const char* name, int flags) {
  return remove_at(folder, name, flags);
}
int rmdir(const char* name) {
  return remove_at(AT_FDCWD, name, AT_REMOVEDIR);
}
int remove(const char* name) {
  const int result = remove_at(AT_FDCWD, name, 0);
  return result != 0 && errno == EISDIR ? remove_at(AT_FDCWD, name, AT_REMOVEDIR) : result;
}

int rename(const char* from, const char* to) {
  return two_paths(kRename, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return two_paths(kRename, SYS_renameat2, from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return two_paths(kRename, SYS_renameat2, from_folder, from, to_folder, to, flags);
}
int link(const char* from, const char* to) {
  return two_paths(kLink, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return two_paths(kLink, SYS_linkat, from_folder, from, to_folder, to, static_cast<unsigned>(flags));
}
int symlink(const char* target, const char* name) {
  std::string inner;
  if (!within(AT_FDCWD, name, inner)) return static_cast<int>(call(SYS_symlink, target, name));
  record(kRefused, 0, 0, "a symbolic link");
  errno = EPERM;
  return -1;
}

int mkdir(const char* name, mode_t mode) {
  return make_folder(AT_FDCWD, name, mode);
}
int mkdirat(int folder, const char* name, mode_t mode) {
  return make_folder(folder, name, mode);
}

// Modes are taken as kept at once.
int fchmod(int descriptor, mode_t mode) {
  if (tracked(descriptor) == 0) return static_cast<int>(call(SYS_fchmod, descriptor, mode));
  const Operation operation;
  const long result = call(SYS_fchmod, descriptor, mode);
  if (result == 0) record(kMode, number_of(descriptor), mode);
  return static_cast<int>(result);
}
int fchmodat(int folder, const char* name, mode_t mode, int flags) {
  static const auto real = next<int (*)(int, const char*, mode_t, int)>("fchmodat");
  std::string inner;
  if (!within(folder, name, inner)) return real(folder, name, mode, flags);
  const Operation operation;
  const int result = real(folder, name, mode, flags);
  bool there = false;
  const std::uint64_t number = number_of(folder, name, there);
  if (result == 0) record(kMode, number, mode);
  return result;
}
int chmod(const char* name, mode_t mode) {
  return fchmodat(AT_FDCWD, name, mode, 0);
}

}  // extern "C"
