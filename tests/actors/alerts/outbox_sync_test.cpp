// Whether an appended event survives the end of the machine, and not only of the process: it has to lie on
// the disk when `append` returns. A process that is killed leaves all that it wrote with the system, so that
// no kill can tell the difference. This file stands between RocksDB and the system instead, and keeps how
// much of each file was synced.
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "actors/alerts/outbox.h"
#include "tests/actors/outboxes.h"
#include "tests/temporary_folder.h"

namespace vigil::actors {
namespace {

/// Thread-safe: RocksDB has threads of its own.
class Disk {
 public:
  static Disk& instance() {
    static Disk disk;
    return disk;
  }

  void synced(int descriptor) {
    struct stat status {};
    std::error_code error;
    const auto file = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error);
    if (error || fstat(descriptor, &status) != 0) return;
    const std::lock_guard lock(mutex_);
    bytes_[file] = static_cast<std::uintmax_t>(status.st_size);
    last_ = file;
  }
  std::filesystem::path last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

  /// Of this file, as it was when it was synced last.
  std::uintmax_t bytes(const std::filesystem::path& file) const {
    const std::lock_guard lock(mutex_);
    const auto entry = bytes_.find(file);
    return entry == bytes_.end() ? 0 : entry->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, std::uintmax_t> bytes_;
  std::filesystem::path last_;
};

}  // namespace
}  // namespace vigil::actors

// In place of the C library's: RocksDB calls these.
extern "C" int fdatasync(int descriptor) {
  const auto result = static_cast<int>(::syscall(SYS_fdatasync, descriptor));
  if (result == 0) vigil::actors::Disk::instance().synced(descriptor);
  return result;
}

extern "C" int fsync(int descriptor) {
  const auto result = static_cast<int>(::syscall(SYS_fsync, descriptor));
  if (result == 0) vigil::actors::Disk::instance().synced(descriptor);
  return result;
}

namespace vigil::actors {
namespace {

TEST(OutboxSync, WhatWasAppendedLiesOnTheDisk) {
  const TemporaryFolder scratch;
  const std::filesystem::path& folder = scratch.path();
  {
    const testing::OutboxClock clock;
    config::RetentionClock ages(clock);
    const auto outbox = open_rocksdb_outbox(folder / "outbox", ages);
    std::uintmax_t before = 0;
    for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
      const std::string body = "event " + std::to_string(sequence);
      const std::uint64_t position = outbox->append({0, "a/", sequence, {}, body});
      // RocksDB writes to its log first; only what is in it can be read after a crash.
      std::uintmax_t written = 0;
      std::uintmax_t synced = 0;
      for (const auto& entry : std::filesystem::directory_iterator(folder / "outbox")) {
        if (entry.path().extension() != ".log") continue;
        written += entry.file_size();
        synced += Disk::instance().bytes(entry.path());
      }
      EXPECT_GE(written, before + body.size());
      EXPECT_EQ(synced, written) << "event " << sequence;
      EXPECT_EQ(Disk::instance().last(), folder / "outbox" / "WATERMARK") << "which vouches for it";
      before = written;
      // Not synced by itself, but with the next event.
      outbox->acknowledge(position);
    }
  }
}

}  // namespace
}  // namespace vigil::actors
