// A disk that is full, fails or is read-only, and a process that is killed, at any of its calls. This file
// stands between the store (and RocksDB) and the system.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/kv/history/history_store.h"
#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

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

Disk& disk() {
  static Disk one;
  return one;
}

}  // namespace
}  // namespace vigil::history

// In place of the C library's.
using vigil::history::disk;

extern "C" ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  if (disk().has(descriptor)) {
    if (disk().fails()) return -1;
    disk().bytes += count;
  }
  return ::syscall(SYS_pwrite64, descriptor, bytes, count, offset);
}

extern "C" ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t offset) {
  return pwrite(descriptor, bytes, count, offset);
}

extern "C" ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (disk().has(descriptor)) {
    if (disk().fails()) return -1;
    disk().bytes += count;
  }
  return ::syscall(SYS_write, descriptor, bytes, count);
}

extern "C" ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  if (disk().reading_fails(descriptor)) return -1;
  return ::syscall(SYS_pread64, descriptor, bytes, count, offset);
}

extern "C" int fdatasync(int descriptor) {
  if (disk().has(descriptor) && disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

extern "C" int fsync(int descriptor) {
  if (disk().has(descriptor) && disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (disk().has(to) && disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

extern "C" int unlink(const char* path) noexcept {
  if (disk().has(path) && disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_unlink, path));
}

extern "C" int remove(const char* path) noexcept {
  if (disk().has(path) && disk().fails()) return -1;
  const long removed = ::syscall(SYS_unlink, path);
  return removed != 0 && errno == EISDIR ? static_cast<int>(::syscall(SYS_rmdir, path))
                                         : static_cast<int>(removed);
}

extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_CREAT) != 0 && disk().has(path) && disk().fails()) return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

namespace vigil::history {
namespace {

using testing::file_bytes;
using testing::files_in;
using ::testing::HasSubstr;
using testing::is_whole;
using ::testing::IsEmpty;
using testing::kFirstHour;
using testing::kGate;
using testing::kHour;
using testing::kSecond;
using testing::kYard;
using testing::missing;
using testing::part_of;
using ::testing::SizeIs;
using testing::value_of;
namespace fs = std::filesystem;

constexpr WallRange kAny{INT64_MIN, INT64_MAX};
constexpr std::int64_t kBegin = kFirstHour * kHour;

// From one call that fails, or kills, to the next one that is tried.
#ifdef VIGIL_ALL_KILLS
constexpr long kFaultStride = 1;
constexpr long kKillStride = 3;
#else
constexpr long kFaultStride = 13;
constexpr long kKillStride = 41;
#endif

class HistoryFaults : public ::testing::TestWithParam<bool> {
 protected:
  HistoryFaults() {
    if (GetParam()) options_.master = SecretKey::random();
  }
  ~HistoryFaults() override { works(); }

  std::unique_ptr<HistoryStore> open() const { return open_history_store(path(), options_); }
  fs::path path() const { return folder_.path() / "history"; }

  void fails_after(long calls, int error) const {
    disk().folder = path();
    disk().error = error;
    disk().countdown = calls;
  }
  static void works() { disk().countdown = -1; }

  HistoryOptions options_;
  TemporaryFolder folder_;
};

TEST_P(HistoryFaults, APutCountsAsAWholeOrNotAtAll) {
  for (const int error : {ENOSPC, EIO, EROFS}) {
    bool failed = true;
    for (long call = 0; failed; ++call) {
      SCOPED_TRACE("error " + std::to_string(error) + " at call " + std::to_string(call));
      ASSERT_LT(call, 200);
      fs::remove_all(path());
      auto store = open();
      store->put(part_of(kGate, kFirstHour, 0, 1, 3).part);
      fails_after(call, error);
      failed = false;
      try {
        store->put(part_of(kGate, kFirstHour, 30, 4, 3).part);
      } catch (const HistoryError& fault) {
        failed = true;
        EXPECT_THAT(fault.what(), HasSubstr(std::generic_category().message(error)));
      }
      const bool reached = disk().countdown == 0;
      EXPECT_TRUE(is_whole(*store, kGate, 1, 2)) << "reads go on";
      EXPECT_EQ(missing(*store, kGate, 4), failed ? Missing::absent : Missing::no);
      EXPECT_THAT(store->pages(kGate, kAny), SizeIs(failed ? 3 : 6));
      // It still fails.
      if (failed) {
        EXPECT_THROW(store->put(part_of(kGate, kFirstHour, 60, 7, 3).part), HistoryError);
      }
      works();
      EXPECT_EQ(store->put(part_of(kGate, kFirstHour, 60, 10, 3).part).pages, 3U) << "and goes on by itself";
      for (int start = 0; start < 2; ++start) {
        EXPECT_THAT(store->pages(kGate, kAny), SizeIs(failed ? 6 : 9));
        EXPECT_EQ(store->verify(std::nullopt).damaged, 0U);
        EXPECT_TRUE(is_whole(*store, kGate, 12, 0));
        EXPECT_EQ(files_in(path() / "parts").size(), failed ? 2U : 3U) << "nothing half is left";
        store.reset();
        store = open();
      }
      failed = failed || reached;
    }
  }
}

// RocksDB waits for a second after each failure in its own threads.
TEST_P(HistoryFaults, AnErasureThatFailsCanBeAskedAgain) {
  bool reached = true;
  for (long call = 0; reached; call += kFaultStride) {
    const int error = call % 2 == 0 ? ENOSPC : EIO;
    SCOPED_TRACE("error " + std::to_string(error) + " at call " + std::to_string(call));
    ASSERT_LT(call, 400);
    fs::remove_all(path());
    auto store = open();
    store->put(part_of(kGate, kFirstHour, 0, 1, 6).part);
    store->put(part_of(kGate, kFirstHour, 60, 7, 3).part);
    fails_after(call, error);
    bool holds = false;
    try {
      store->erase(kGate, {kBegin + 25 * kSecond, kBegin + 35 * kSecond});
      holds = true;
      EXPECT_EQ(missing(*store, kGate, 3), Missing::absent);
      store->finish_erasures();
    } catch (const HistoryError&) {
    }
    reached = disk().countdown == 0;
    EXPECT_TRUE(is_whole(*store, kGate, 1, 0));
    works();
    if (!holds) store->erase(kGate, {kBegin + 25 * kSecond, kBegin + 35 * kSecond});
    store->finish_erasures();
    for (int start = 0; start < 2; ++start) {
      for (const std::uint64_t page : {1U, 2U, 5U, 6U, 7U, 9U})
        EXPECT_TRUE(is_whole(*store, kGate, page, 2)) << page;
      for (const std::uint64_t page : {3U, 4U}) EXPECT_EQ(missing(*store, kGate, page), Missing::absent);
      EXPECT_EQ(files_in(path() / "parts").size(), 2U);
      store.reset();
      store = open();
    }
    const auto bytes = value_of(kGate, 3, 0, 3000);
    const std::string trace(reinterpret_cast<const char*>(bytes.data()), 16);
    for (const fs::path& file : files_in(path()))
      EXPECT_EQ(file_bytes(file).find(trace), std::string::npos) << file;
  }
}

TEST_P(HistoryFaults, WhatCannotBeReadNowIsDamagedNow) {
  const auto store = open();
  store->put(part_of(kGate, kFirstHour, 0, 1, 3).part);
  disk().folder = path();
  disk().unreadable = true;
  EXPECT_EQ(missing(*store, kGate, 1), Missing::damaged);
  EXPECT_THAT(store->list().at(0).gaps, SizeIs(1));
  disk().unreadable = false;
  EXPECT_TRUE(is_whole(*store, kGate, 1, 0));
  EXPECT_THAT(store->list().at(0).gaps, IsEmpty());
}

TEST_P(HistoryFaults, AFullDiskIsSeenBeforeItIsFull) {
  options_.keep_free = std::uintmax_t{1} << 60U;
  const auto store = open();
  try {
    store->put(part_of(kGate, kFirstHour, 0, 1, 3).part);
    ADD_FAILURE();
  } catch (const HistoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no space left on the disk"));
  }
}

/// What a process that is killed has been told.
struct Told {
  std::atomic<int> steps{0};
};

/// Puts, erases and retires; `step` after each.
template <class F>
void work(HistoryStore& store, F step) {
  store.put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  step();  // 1
  store.put(part_of(kYard, kFirstHour, 0, 1, 6).part);
  step();  // 2
  store.put(part_of(kGate, kFirstHour + 1, 0, 7, 6).part);
  step();  // 3
  store.erase(kGate, {kBegin + 25 * kSecond, kBegin + 35 * kSecond});
  step();  // 4
  store.finish_erasures();
  step();  // 5
  const Expiry over[] = {{kYard, kFirstHour + 1}};
  store.retire(over);
  step();  // 6
  store.put(part_of(kGate, kFirstHour + 1, 60, 13, 6).part);
  step();  // 7
}

void expect_consistent(const HistoryStore& store, int steps) {
  EXPECT_EQ(store.verify(std::nullopt).damaged, 0U);
  const auto put = [&](const CameraId& camera, std::uint64_t first, int step, auto erased) {
    std::size_t there = 0;
    for (std::uint64_t page = first; page < first + 6; ++page) {
      const bool whole = is_whole(store, camera, page, 0) && is_whole(store, camera, page, 2);
      EXPECT_EQ(whole, missing(store, camera, page) == Missing::no) << page;
      EXPECT_FALSE(whole && erased(page)) << page << " was erased";
      there += whole || erased(page) ? 1U : 0U;
    }
    EXPECT_TRUE(there == 6 || (there <= 2 && steps < step)) << camera.camera << ' ' << first << ": " << there;
  };
  const auto never = [](std::uint64_t) { return false; };
  put(kGate, 1, 1, [&](std::uint64_t page) { return steps >= 4 && (page == 3 || page == 4); });
  put(kGate, 7, 3, never);
  put(kGate, 13, 7, never);
  if (steps < 5) {
    put(kYard, 1, 2, never);
  } else if (steps >= 6) {
    EXPECT_EQ(missing(store, kYard, 1), Missing::absent);
  }
}

TEST_P(HistoryFaults, WhereverItIsKilledEachPageIsWholeOrAbsent) {
  void* const shared =
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const told = new (shared) Told;
  const auto bytes = value_of(kGate, 3, 0, 3000);
  const std::string trace(reinterpret_cast<const char*>(bytes.data()), 16);
  int kills = 0;
  for (long call = 0;; call += kKillStride) {
    SCOPED_TRACE("killed at call " + std::to_string(call));
    fs::remove_all(path());
    told->steps = 0;
    ASSERT_TRUE(testing::run_and_kill([&] {
      fails_after(call, 0);
      const auto store = open();
      work(*store, [&] { ++told->steps; });
      ++told->steps;
    }));
    if (told->steps == 8) break;
    ++kills;
    const auto store = open();
    expect_consistent(*store, told->steps);
    if (told->steps >= 4) {
      for (const fs::path& file : files_in(path()))
        EXPECT_EQ(file_bytes(file).find(trace), std::string::npos) << file;
    }
    EXPECT_EQ(store->put(part_of(kYard, kFirstHour + 2, 0, 100, 2).part).pages, 2U);
    if (HasFailure()) break;
  }
#ifdef VIGIL_ALL_KILLS
  EXPECT_GE(kills, 100);
#else
  EXPECT_GE(kills, 5);
#endif
  ::munmap(shared, sizeof(Told));
}

#ifndef VIGIL_ALL_KILLS
// Of a day of cameras, a few: parts of ten pages of the smallest usual size; a day is kept, and twelve hours
// more come and go, with an erasure of some minutes now and then.
TEST_P(HistoryFaults, WritesLittleMoreThanWhatIsKept) {
  constexpr std::size_t kPageBytes = 65536;
  const auto store = open();
  disk().folder = path();
  works();
  const CameraId cameras[] = {{"site", "1"}, {"site", "2"}, {"site", "3"}, {"site", "4"}};
  std::uint64_t kept = 0;
  disk().bytes = 0;
  for (std::uint32_t hour = 0; hour < 36; ++hour) {
    std::vector<Expiry> over;
    for (const CameraId& camera : cameras) {
      store->put(part_of(camera, kFirstHour + hour, 0, 1 + 10 * hour, 10, kPageBytes, 2).part);
      kept += 10 * kPageBytes;
      if (hour >= 24) over.push_back({camera, kFirstHour + hour - 23});
    }
    store->retire(over);
    if (hour % 12 == 11) {
      const std::int64_t from = (kFirstHour + hour) * kHour + 20 * kSecond;
      store->erase(cameras[hour % 4], {from, from + 30 * kSecond});
      store->finish_erasures();
    }
  }
  const double amplification = static_cast<double>(disk().bytes) / static_cast<double>(kept);
  RecordProperty("write_amplification", std::to_string(amplification));
  EXPECT_LE(amplification, 1.1);
  EXPECT_GE(amplification, 1.0);
}

TEST_P(HistoryFaults, ReadersGoOnBesideWhatChanges) {
  const auto store = open();
  store->put(part_of(kYard, kFirstHour, 0, 1, 6).part);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      while (!done) {
        for (std::uint64_t page = 1; page <= 6; ++page) {
          // Page 2 is erased in between.
          if (page != 2 && !is_whole(*store, kYard, page, 0)) ++wrong;
          if (missing(*store, kYard, 2) == Missing::damaged) ++wrong;
        }
        store->list();
      }
    });
  for (std::uint64_t i = 0; i < 10; ++i) {
    store->put(part_of(kGate, kFirstHour, static_cast<int>(60 * i), 1 + 6 * i, 6).part);
    if (i == 5) store->erase(kYard, {kBegin + 10 * kSecond, kBegin + 20 * kSecond - 1});
    store->finish_erasures();
    if (i == 8) store->erase(kGate, kAny);
  }
  done = true;
  for (std::thread& each : readers) each.join();
  EXPECT_EQ(wrong, 0);
}
#endif

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, HistoryFaults, ::testing::Bool());

}  // namespace
}  // namespace vigil::history
