// A disk that is full, fails or is read-only, at any call; what is written, and readers beside it.
#include <atomic>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kv/history/history_store.h"
#include "tests/engine/kv/history/faulty_disk.h"
#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

using testing::disk;
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

// From one call that fails to the next one that is tried: RocksDB waits for a second after each.
constexpr long kFaultStride = 13;

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
        EXPECT_EQ(store->verify(std::nullopt, 1).damaged, 0U);
        EXPECT_TRUE(is_whole(*store, kGate, 12, 0));
        EXPECT_EQ(files_in(path() / "parts").size(), failed ? 2U : 3U) << "nothing half is left";
        store.reset();
        store = open();
      }
      failed = failed || reached;
    }
  }
}

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

// A full disk: what `erase` refused is not promised, and what it returned for is, whatever the disk does
// next.
TEST_P(HistoryFaults, AnErasureIsOnTheDiskWhenItReturnsAndRefusedWhereItCannotBe) {
  const WallRange wall{kBegin + 25 * kSecond, kBegin + 35 * kSecond};
  auto store = open();
  store->put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  fails_after(0, ENOSPC);
  try {
    store->erase(kGate, wall);
    ADD_FAILURE();
  } catch (const HistoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::generic_category().message(ENOSPC)));
  }
  works();
  store.reset();
  store = open();
  EXPECT_TRUE(is_whole(*store, kGate, 3, 0));
  EXPECT_THAT(store->erasures(), IsEmpty());
  store->erase(kGate, wall);
  fails_after(0, ENOSPC);
  EXPECT_THROW(store->finish_erasures(), HistoryError);
  EXPECT_EQ(missing(*store, kGate, 3), Missing::absent);
  store.reset();
  works();
  store = open();
  EXPECT_EQ(missing(*store, kGate, 3), Missing::absent);
  ASSERT_THAT(store->erasures(), SizeIs(1));
  EXPECT_TRUE(store->erasures()[0].finished) << "the next start ends what was begun";
}

TEST_P(HistoryFaults, NotesCountTogetherOrNotAtAll) {
  bool failed = true;
  for (long call = 0; failed; ++call) {
    SCOPED_TRACE("at call " + std::to_string(call));
    ASSERT_LT(call, 50);
    fs::remove_all(path());
    auto store = open();
    const Note notes[] = {{kGate, {1, 5}, 2}, {kYard, {1, 5}, 2}};
    fails_after(call, EIO);
    failed = false;
    try {
      store->note(notes);
    } catch (const HistoryError&) {
      failed = true;
      EXPECT_THAT(store->notes(kGate, kAny), IsEmpty());
    }
    works();
    store->note({notes + 1, 1});
    store.reset();
    store = open();
    EXPECT_THAT(store->notes(kYard, kAny), SizeIs(1));
    if (!failed) {
      EXPECT_THAT(store->notes(kGate, kAny), SizeIs(1));
    }
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

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, HistoryFaults, ::testing::Bool());

}  // namespace
}  // namespace vigil::history
