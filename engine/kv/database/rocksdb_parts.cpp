#include "engine/kv/database/rocksdb_parts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <memory>
#include <system_error>

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/table.h>
#include <sys/stat.h>

#include "base/durable.h"

namespace vigil::kv {
namespace {

class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, std::va_list) override {}
};

/// A CURRENT that no power cut leaves behind without what it names, and files that only their owner may read.
/// RocksDB's own switch for that (SetAllowNonOwnerAccess) does nothing in the versions that are packaged, and
/// the umask is the process's, with all its threads. Between its creation and this, the folder's mode
/// protects a file.
class PrivateFiles final : public rocksdb::FileSystemWrapper {
 public:
  PrivateFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "PrivateFiles"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = target()->NewWritableFile(name, options, file, context);
    if (status.ok()) ::chmod(name.c_str(), S_IRUSR | S_IWUSR);
    return status;
  }
  // RocksDB syncs the folder afterwards alone: the name of the new MANIFEST could be lost, and that of the
  // new CURRENT kept.
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override {
    try {
      base::sync(std::filesystem::path(to).parent_path());
    } catch (const base::FileError& error) {
      return rocksdb::IOStatus::IOError(error.what());
    }
    return target()->RenameFile(from, to, options, context);
  }
  rocksdb::IOStatus LockFile(const std::string& name, const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = target()->LockFile(name, options, lock, context);
    if (status.ok()) ::chmod(name.c_str(), S_IRUSR | S_IWUSR);
    return status;
  }
};

rocksdb::Env& private_env() {
  static const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(std::make_shared<PrivateFiles>());
  return *env;
}

}  // namespace

rocksdb::Options database_options() {
  rocksdb::Options result;
  result.env = &private_env();
  result.create_if_missing = true;
  // Alerts, and entries that say where pages are, are few and small: no more memory or threads than they
  // need. What was written last stays in memory up to this size, which at a kilobyte an event is reached
  // after minutes rather than hours.
  result.write_buffer_size = 512 << 10;
  result.max_background_jobs = 1;
  result.max_open_files = 64;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(1 << 20);
  result.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // Its own log would be on the same disk. When that is full, RocksDB as Debian builds it ends the process
  // at the log's second line (an assertion of WritableFileWriter), of all things while it reports the
  // error.
  result.info_log = std::make_shared<NoLog>();
  return result;
}

// An error of the system has its text in the message, whatever RocksDB makes of it: a file that cannot be
// opened because of too many open ones may come as corruption.
bool is_damage(const rocksdb::Status& status) {
  if (status.ok()) return false;
  const std::string text = status.ToString();
  constexpr std::array kOfTheMoment = {EMFILE, ENFILE, ENOSPC, EDQUOT, EACCES, EPERM, EROFS,
                                       EIO,    ENOMEM, EFBIG,  EAGAIN, EBUSY,  EINTR, ESTALE};
  const bool of_the_moment = std::any_of(kOfTheMoment.begin(), kOfTheMoment.end(), [&](int error) {
    return text.find(std::generic_category().message(error)) != std::string::npos;
  });
  if (of_the_moment || status.IsNoSpace() || status.IsBusy() || status.IsTimedOut() || status.IsAborted() ||
      status.IsMemoryLimit() || status.IsShutdownInProgress())
    return false;
  if (!status.IsIOError()) return true;
  return status.IsPathNotFound() || text.find(std::generic_category().message(ENOENT)) != std::string::npos;
}

bool is_unreadable(const rocksdb::Status& status) {
  return status.ToString().find(std::generic_category().message(EIO)) != std::string::npos;
}

bool ReadErrors::lasts(base::Clock::WallTime now) {
  constexpr auto kLasting = std::chrono::minutes(1);
  // Those before such a pause were other ones.
  constexpr auto kPause = std::chrono::minutes(5);
  if (first_ == base::Clock::WallTime() || now - last_ > kPause) first_ = now;
  last_ = now;
  return now - first_ >= kLasting;
}

// A lock that cannot be tried, as without descriptors, is an error as well, and tells nothing.
bool is_locked(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return status.IsIOError() && text.find("lock") != std::string::npos &&
         (text.find(std::generic_category().message(EAGAIN)) != std::string::npos ||
          text.find("lock hold by current process") != std::string::npos);
}

}  // namespace vigil::kv
