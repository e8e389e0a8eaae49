// The folder of stills and clips: names, who may read them, and which go when.
#include "actors/evidence/evidence_store.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "actors/alerts/outbox.h"
#include "tests/actors/evidence_files.h"
#include "tests/actors/fakes.h"
#include "tests/actors/times.h"
#include "tests/media/clip.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using media::Scratch;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

class Store : public ::testing::Test {
 protected:
  EvidenceStore open(std::uintmax_t budget = 1000, base::Duration age = 24h) {
    return EvidenceStore({.dir = folder_, .budget = budget, .max_age = age, .free_bytes = {}},
                         retention_clock_);
  }

  /// Time passes, and the store is tidied as often as its actor does.
  void pass(EvidenceStore& store, base::Duration time) {
    for (base::Duration step = 30s; time > 0s; time -= step) {
      step = std::min(step, time);
      clock_.advance(step);
      store.tidy();
    }
  }

  unsigned modes(const fs::path& path) const {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777U;
  }

  Scratch scratch_;
  fs::path folder_ = scratch_ / "evidence";
  ManualClock clock_;
  config::RetentionClock retention_clock_{clock_};
};

TEST_F(Store, NamesHoldTheTimeAndStayInTheFolderWhateverTheyAreMadeOf) {
  EXPECT_EQ(EvidenceStore::place("gate-7", "person", "01J", kStart + 12480ms),
            "gate-7/2026-08-01/20260801T100012.480Z-person-01J");
  EvidenceStore store = open();
  for (const std::string& name :
       {std::string("../../x"), std::string(".."), std::string("."), std::string(""),
        std::string("/etc/passwd"), std::string("a/b"), std::string("a\0b", 3), std::string("\xff\n"),
        std::string(300, 'n'), std::string("~")}) {
    const fs::path place = EvidenceStore::place(name, name, name, kStart);
    EXPECT_EQ(std::distance(place.begin(), place.end()), 3) << place;
    EXPECT_EQ(place.lexically_normal(), place);
    EXPECT_FALSE(place.is_absolute());
    for (const fs::path& part : place) {
      EXPECT_FALSE(part.string().starts_with('.')) << place;
      EXPECT_LT(part.string().size(), 250U);
    }
    std::ofstream(store.prepare(place.string() + ".jpg")) << "x";
    EXPECT_EQ(store.keep(place.string() + ".jpg"), 1U) << place;
  }
  for (const auto& entry : fs::directory_iterator(scratch_ / "")) EXPECT_EQ(entry.path(), folder_);
}

TEST_F(Store, WhatWasKeptFirstGoesFirstWhateverTheTimesInTheNames) {
  EvidenceStore store = open(1000);
  const std::string first = put(store, kStart + 3s, 300);
  // The machine's clock was set back meanwhile.
  const std::string second = put(store, kStart - 240h, 300);
  const std::string third = put(store, kStart + 2s, 300);
  EXPECT_EQ(store.bytes(), 900U);
  const std::string fourth = put(store, kStart + 4s, 300);
  EXPECT_THAT(files_below(folder_), ::testing::UnorderedElementsAre(second, third, fourth));
  EXPECT_EQ(store.bytes(), 900U);
  EXPECT_EQ(open(600).bytes(), 600U) << "another process knows it, too";
  EXPECT_THAT(files_below(folder_), ::testing::UnorderedElementsAre(third, fourth));
}

TEST_F(Store, NothingIsLeftOfWhatGoes) {
  EvidenceStore store = open(1000);
  for (int i = 0; i < 3; ++i) put(store, kStart + std::chrono::seconds(i), 300);
  store.make_room(1000);
  EXPECT_THAT(files_below(folder_), IsEmpty());
  EXPECT_EQ(store.bytes(), 0U);
  EXPECT_FALSE(fs::exists(folder_ / "gate")) << "nor are folders left";
  EXPECT_THROW(store.make_room(1001), EvidenceError);
}

TEST_F(Store, AStillGoesWithItsClip) {
  EvidenceStore store = open(1000);
  put(store, kStart, 400, ".mp4", "A");
  const std::string other = put(store, kStart, 100, ".jpg", "B");
  put(store, kStart, 100, ".jpg", "A");
  store.make_room(450);
  EXPECT_THAT(files_below(folder_), ElementsAre(other));
}

TEST_F(Store, AFileThatIsWrittenAgainCountsOnce) {
  EvidenceStore store = open(1000);
  put(store, kStart, 400);
  put(store, kStart, 300);
  EXPECT_EQ(store.bytes(), 300U);
}

TEST_F(Store, WhatIsOlderThanAllowedGoes) {
  EvidenceStore store = open(1000, 1h);
  put(store, clock_.wall(), 10, ".mp4", "old");
  pass(store, 59min);
  const std::string young = put(store, clock_.wall(), 10, ".mp4", "young");
  pass(store, 1min);
  EXPECT_EQ(store.bytes(), 20U) << "just an hour";
  pass(store, 1s);
  EXPECT_THAT(files_below(folder_), ElementsAre(young));
  EXPECT_EQ(store.bytes(), 10U);
}

TEST_F(Store, AfterAStartWhatIsOldStaysUntilTheClockCanBeTrusted) {
  {
    EvidenceStore store = open(1000, 1h);
    put(store, kStart, 10);
  }
  clock_.advance(2h);
  EvidenceStore store = open(1000, 1h);
  pass(store, 10min - 1ms);
  EXPECT_EQ(store.bytes(), 10U);
  pass(store, 1ms);
  EXPECT_EQ(store.bytes(), 0U);
}

TEST_F(Store, AStepOfTheClockMakesNothingOld) {
  for (const base::Duration step : {base::Duration(240h), base::Duration(-24h * 365 * 24)}) {
    EvidenceStore store = open(1000, 168h);
    put(store, clock_.wall(), 10, ".mp4", "before");
    clock_.jump(step);
    pass(store, 10min - 30s);
    EXPECT_EQ(store.bytes(), 10U) << "a step of " << step / 1h << " hours";
    clock_.jump(-step);
    pass(store, 30min);
    EXPECT_EQ(store.bytes(), 10U) << "it was taken back";
    // It stays. Nothing that this process kept is older for it.
    clock_.jump(step);
    pass(store, 1h);
    EXPECT_EQ(store.bytes(), 10U);
    store.make_room(1000);
  }
}

TEST_F(Store, BetweenTwoRunsNeither) {
  // 0: as it was; then ten days ahead, and a machine that starts in 2002.
  for (const base::Duration step :
       {base::Duration(0), base::Duration(240h), base::Duration(-24h * 365 * 24)}) {
    SCOPED_TRACE(step / 1h);
    const base::Clock::WallTime before = clock_.wall();
    {
      config::RetentionClock clock(clock_);
      EvidenceStore store({.dir = folder_, .budget = 1000, .max_age = 168h, .free_bytes = {}}, clock);
      put(store, clock_.wall(), 10, ".mp4", "before");
    }
    clock_.jump(step);
    for (const bool known : {true, false}) {
      // Whether the time that was known last was kept, too.
      config::RetentionClock clock(clock_);
      if (known) clock.resume(before);
      EvidenceStore store({.dir = folder_, .budget = 1000, .max_age = 168h, .free_bytes = {}}, clock);
      EXPECT_EQ(store.bytes(), 10U);
      pass(store, 9min);
      EXPECT_EQ(store.bytes(), 10U);
      put(store, clock_.wall(), 5, ".mp4", "meanwhile");
      pass(store, 50s);
      EXPECT_EQ(store.bytes(), 15U);
      fs::remove(folder_ / EvidenceStore::place("gate", "person", "meanwhile", clock_.wall()));
      store.make_room(985);
      EXPECT_EQ(store.bytes(), 15U);
      store.make_room(986);
      EXPECT_EQ(store.bytes(), 5U) << "what was kept before goes before";
      store.make_room(1000);
      put(store, clock_.wall(), 10, ".mp4", "before");
    }
    clock_.jump(-step);
    open(1000).make_room(1000);
  }
}

TEST_F(Store, AfterALongRestWhatWasKeptSinceIsNoOlderForIt) {
  const base::Clock::WallTime before = clock_.wall();
  {
    EvidenceStore store = open(1000, 168h);
    put(store, clock_.wall(), 10, ".mp4", "before");
  }
  // Ten days, of which the clock learns when the machine's has said so for ten minutes.
  clock_.advance(240h);
  retention_clock_.resume(before);
  std::string since;
  {
    EvidenceStore store = open(1000, 168h);
    since = put(store, clock_.wall(), 10, ".mp4", "since");
    pass(store, 11min);
    EXPECT_THAT(files_below(folder_), ElementsAre(since)) << "the other one is ten days old";
  }
  EvidenceStore store = open(1000, 168h);
  pass(store, 1h);
  EXPECT_THAT(files_below(folder_), ElementsAre(since)) << "nor after another start";
  pass(store, 167h);
  EXPECT_THAT(files_below(folder_), IsEmpty()) << "a week after it was kept";
}

TEST_F(Store, FilesOfBeforeAreTakenOverWithTheirAges) {
  // Programs before this one set no times: what the file system wrote down is the machine's time then.
  const auto written = [&](const std::string& episode, base::Duration ago) {
    const fs::path file =
        folder_ / (EvidenceStore::place("gate", "person", episode, kStart - ago).string() + ".mp4");
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "x";
    fs::last_write_time(file, std::chrono::file_clock::from_sys(kStart - ago));
    return file.lexically_relative(folder_).string();
  };
  const std::string old = written("old", 167h);
  const std::string young = written("young", 1h);
  // When its clock was wrong.
  const std::string future = written("future", -1000h);
  EvidenceStore store = open(1000, 168h);
  EXPECT_EQ(store.bytes(), 3U);
  pass(store, 61min);
  EXPECT_THAT(files_below(folder_), ::testing::UnorderedElementsAre(young, future));
  pass(store, 166h);
  EXPECT_THAT(files_below(folder_), ElementsAre(future));
  pass(store, 62min);
  EXPECT_THAT(files_below(folder_), IsEmpty()) << "its age counts from the start";
}

TEST_F(Store, ARestartCountsWhatIsThereAndRemovesWhatWasNotFinished) {
  std::string kept;
  {
    EvidenceStore store = open();
    put(store, kStart - 23h, 300);
    kept = put(store, kStart, 300);
    std::ofstream(folder_ / "gate" / "2026-08-01" / ".part-20260801T100012.480Z-person-E.mp4") << "half";
    std::ofstream(folder_ / "gate" / "2026-08-01" / "holiday.mp4") << "not ours";
    std::ofstream(folder_ / "gate" / "2026-08-01" / "20261301T100012.480Z-person-E.mp4") << "no such month";
    std::ofstream(folder_ / "notes.txt") << "not ours";
    fs::create_directory_symlink(folder_, folder_ / "loop");
    fs::create_symlink("/etc/hostname",
                       folder_ / "gate" / "2026-08-01" / "20200801T100012.480Z-person-E.mp4");
  }
  EvidenceStore store = open();
  EXPECT_EQ(store.bytes(), 600U);
  EXPECT_EQ(store.failure(), "");
  for (const std::string& file : files_below(folder_)) EXPECT_THAT(file, ::testing::Not(HasSubstr(".part-")));
  store.make_room(700);
  EXPECT_EQ(store.bytes(), 300U);
  EXPECT_TRUE(fs::exists(folder_ / kept));
  store.make_room(900);
  EXPECT_EQ(store.bytes(), 0U);
  EXPECT_TRUE(fs::exists(folder_ / "gate" / "2026-08-01" / "holiday.mp4")) << "what is not ours stays";
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
  EXPECT_TRUE(fs::exists("/etc/hostname"));
}

TEST_F(Store, NobodyElseMayReadIt) {
  EvidenceStore store = open();
  const fs::path file = put(store, kStart, 10);
  for (const fs::path& folder : {fs::path(), file.parent_path(), file.parent_path().parent_path()})
    EXPECT_EQ(modes(folder_ / folder), 0700U) << folder;
  EXPECT_EQ(modes(folder_ / file), 0600U);
}

TEST_F(Store, NorWhatIsThereAlready) {
  fs::path file;
  {
    EvidenceStore store = open();
    file = put(store, kStart, 10);
  }
  const fs::path note = folder_ / "notes.txt";
  std::ofstream(note) << "not ours";
  for (const fs::path& folder : {fs::path(), file.parent_path(), file.parent_path().parent_path()})
    ASSERT_EQ(::chmod((folder_ / folder).c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder_ / file).c_str(), 0644), 0);
  ASSERT_EQ(::chmod(note.c_str(), 0644), 0);
  EvidenceStore store = open();
  EXPECT_EQ(store.failure(), "");
  for (const fs::path& folder : {fs::path(), file.parent_path(), file.parent_path().parent_path()})
    EXPECT_EQ(modes(folder_ / folder), 0700U) << folder;
  EXPECT_EQ(modes(folder_ / file), 0600U);
  EXPECT_EQ(modes(note), 0644U);
}

TEST_F(Store, AFolderOfOthersStaysTheirs) {
  fs::create_directories(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 01777), 0);
  EXPECT_THAT(open().failure(), HasSubstr("needs one of its own"));
  EXPECT_EQ(modes(folder_), 0777U);
}

TEST_F(Store, ARestartWithASmallerBudgetRemovesTheOldest) {
  std::string last;
  {
    EvidenceStore store = open();
    put(store, kStart, 300);
    last = put(store, kStart + 1s, 300);
  }
  EXPECT_EQ(open(500).bytes(), 300U);
  EXPECT_THAT(files_below(folder_), ElementsAre(last));
}

TEST_F(Store, AFileThatSomebodyRemovedIsNoTrouble) {
  EvidenceStore store = open();
  fs::remove(folder_ / put(store, kStart, 600));
  put(store, kStart + 1s, 600);
  EXPECT_EQ(store.bytes(), 600U);
}

TEST_F(Store, AFolderThatCannotBeIsToldAndNotThrown) {
  std::ofstream(scratch_ / "evidence") << "a file";
  EvidenceStore store = open();
  EXPECT_EQ(store.failure(), "evidence.dir: " + folder_.string() + ": cannot make the folder: File exists");
  EXPECT_THROW(store.prepare("gate/x.mp4"), EvidenceError);
  EXPECT_EQ(store.shown(folder_.string() + "/gate/x.mp4: full"), "gate/x.mp4: full");
}

/// On a disk that others fill.
class SharedDisk : public Store {
 protected:
  static constexpr std::uintmax_t kDisk = 1000;

  EvidenceStore open() {
    return EvidenceStore({.dir = folder_,
                          .budget = 1 << 20,
                          .max_age = 24h,
                          .keep_free = 100,
                          .free_bytes = [this]() -> std::optional<std::uintmax_t> {
                            if (frozen_) return frozen_;
                            std::uintmax_t used = others_;
                            if (fs::exists(folder_))
                              for (const std::string& file : files_below(folder_))
                                used += fs::file_size(folder_ / file);
                            return kDisk - std::min(used, kDisk);
                          }},
                         retention_clock_);
  }

  std::uintmax_t others_ = 0;
  /// Free bytes that nothing changes.
  std::optional<std::uintmax_t> frozen_;
};

TEST_F(SharedDisk, AClipLeavesTheReserveAloneAndTheOldestMakeWay) {
  EvidenceStore store = open();
  const std::string first = put(store, kStart, 400, ".mp4", "A");
  const std::string second = put(store, kStart, 400, ".mp4", "B");
  EXPECT_THAT(files_below(folder_), ::testing::UnorderedElementsAre(first, second));
  const std::string third = put(store, kStart, 200, ".mp4", "C");
  EXPECT_THAT(files_below(folder_), ::testing::UnorderedElementsAre(second, third))
      << "200 are free, and 100 of them for events";
}

TEST_F(SharedDisk, WithoutSpaceNothingIsWrittenAndNothingIsRemovedForIt) {
  EvidenceStore store = open();
  const std::string kept = put(store, kStart, 100);
  others_ = 850;
  try {
    store.make_room(101);
    FAIL() << "no error";
  } catch (const EvidenceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the disk is nearly full"));
  }
  EXPECT_THAT(files_below(folder_), ElementsAre(kept)) << "it would not be enough";
}

TEST_F(SharedDisk, WhatIsNotFreeWhenItWasRemovedStopsTheRemoving) {
  EvidenceStore store = open();
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i) files.push_back(put(store, kStart, 100, ".mp4", std::to_string(i)));
  frozen_ = 150;
  EXPECT_THROW(store.make_room(101), EvidenceError);
  EXPECT_THAT(files_below(folder_), ElementsAreArray(files.begin() + 1, files.end())) << "the oldest alone";
  fs::remove(folder_ / files[1]);
  EXPECT_THROW(store.make_room(101), EvidenceError);
  EXPECT_THAT(files_below(folder_), ElementsAreArray(files.begin() + 3, files.end()))
      << "one that somebody has removed tells nothing";
  frozen_.reset();
  store.make_room(101);
  EXPECT_THAT(files_below(folder_), SizeIs(2));
}

TEST_F(SharedDisk, WhatIsNotFreeWhenItWasRemovedCostsOneClipARound) {
  EvidenceStore store = open();
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i) files.push_back(put(store, kStart, 100, ".mp4", std::to_string(i)));
  frozen_ = 49;
  store.tidy();
  EXPECT_THAT(files_below(folder_), ElementsAreArray(files.begin() + 1, files.end()));
  store.tidy();
  EXPECT_THAT(files_below(folder_), ElementsAreArray(files.begin() + 2, files.end()));
}

// As one that root has put there, or that a backup has made immutable.
TEST_F(SharedDisk, WhatCannotBeRemovedHoldsNothingElseBack) {
  EvidenceStore store = open();
  const std::string stuck = put(store, kStart, 100, ".mp4", "0");
  put(store, kStart, 100, ".mp4", "1");
  const std::string last = put(store, kStart, 100, ".mp4", "2");
  fs::remove(folder_ / stuck);
  fs::create_directories(folder_ / stuck / "something");
  others_ = 770;
  store.tidy();
  EXPECT_THAT(files_below(folder_), ElementsAre(last));
  EXPECT_THAT(store.take_news(), Optional(::testing::AllOf(HasSubstr(stuck + ": cannot be removed: "),
                                                           HasSubstr("the oldest 1 clip was removed"))));
  others_ = 0;
  store.make_room(600);
  EXPECT_THAT(files_below(folder_), ElementsAre(last));
  pass(store, 25h);
  EXPECT_THAT(files_below(folder_), IsEmpty()) << "younger ones grow old, too";
  EXPECT_EQ(store.take_news(), std::nullopt) << "told once";
}

TEST_F(SharedDisk, WhenOthersFillItTheOldestGiveWay) {
  EvidenceStore store = open();
  put(store, kStart, 100, ".mp4", "A");
  put(store, kStart, 100, ".mp4", "B");
  const std::string last = put(store, kStart, 100, ".mp4", "C");
  others_ = 640;
  store.tidy();
  EXPECT_THAT(files_below(folder_), SizeIs(3)) << "60 are free: no more is written, and that is all";
  EXPECT_EQ(store.take_news(), std::nullopt);
  others_ = 760;
  store.tidy();
  EXPECT_THAT(files_below(folder_), ElementsAre(last));
  EXPECT_THAT(store.take_news(), Optional(HasSubstr("2 clips were removed")));
  EXPECT_EQ(store.take_news(), std::nullopt);
  others_ = kDisk;
  store.tidy();
  EXPECT_THAT(files_below(folder_), IsEmpty()) << "better none than no alerts";
}

// With the disk's own figures.
TEST_F(Store, OnAFullDiskEvidenceIsTheFirstToGo) {
  fs::create_directories(folder_);
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=4m") != 0) GTEST_SKIP() << "may not mount";
  {
    EvidenceStore store(
        {.dir = folder_, .budget = 1 << 30, .max_age = 24h, .keep_free = 1 << 20, .free_bytes = {}},
        retention_clock_);
    for (int i = 0; i < 20; ++i) {
      put(store, kStart, 256 << 10, ".mp4", std::to_string(i));
      EXPECT_GE(fs::space(folder_).available, std::uintmax_t{1} << 20);
    }
    EXPECT_LE(store.bytes(), std::uintmax_t{3} << 20);
    EXPECT_GE(store.bytes(), std::uintmax_t{2} << 20);
    // What grows beside it is not stopped by it.
    std::ofstream events(folder_ / "events");
    for (int i = 0; i < 12; ++i) {
      events << std::string(256 << 10, 'x') << std::flush;
      EXPECT_TRUE(events.good()) << i;
      store.tidy();
    }
    EXPECT_EQ(fs::file_size(folder_ / "events"), std::uintmax_t{3} << 20);
  }
  EXPECT_EQ(::umount2(folder_.c_str(), MNT_DETACH), 0);
}

// Both with what they leave free by default, beside somebody who takes whatever there is.
TEST_F(Store, OnASharedDiskTheOutboxDoesNotStarve) {
  const fs::path disk = scratch_ / "disk";
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=96m") != 0) GTEST_SKIP() << "may not mount";
  {
    const auto outbox = open_rocksdb_outbox(disk / "outbox", retention_clock_);
    EvidenceStore store({.dir = disk / "evidence", .free_bytes = {}}, retention_clock_);
    std::uint64_t sequence = 0;
    const auto tell = [&] {
      for (int i = 0; i < 2; ++i)
        EXPECT_NO_THROW(outbox->append({0, "a/", ++sequence, kStart, std::string(256 << 10, 'x')}));
      store.tidy();
    };
    for (int i = 0; i < 10; ++i) {
      put(store, kStart, 4 << 20, ".mp4", std::to_string(i));
      EXPECT_GE(fs::space(disk).available, std::uintmax_t{64} << 20) << i;
      tell();
    }
    EXPECT_GE(store.bytes(), std::uintmax_t{12} << 20) << "the last of them";
    std::ofstream others(disk / "others");
    for (int i = 0; i < 12; ++i) {
      others << std::string(4 << 20, 'x') << std::flush;
      tell();
    }
    EXPECT_LE(store.bytes(), std::uintmax_t{8} << 20) << "the rest has given way";
    EXPECT_THAT(store.take_news(), Optional(HasSubstr("were removed")));
    EXPECT_THROW(put(store, kStart, 40 << 20, ".mp4", "large"), EvidenceError);
  }
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace vigil::actors
