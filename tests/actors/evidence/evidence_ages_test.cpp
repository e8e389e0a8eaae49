// Evidence whose time is to come: kept when a clock was wrong, or before one is.
#include <filesystem>
#include <fstream>
#include <list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/evidence/evidence_store.h"
#include "tests/actors/evidence_files.h"
#include "tests/actors/fakes.h"
#include "tests/actors/times.h"
#include "tests/media/clip.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::Contains;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

/// With a file of ten years ahead.
class AfterAWrongClock : public ::testing::Test {
 protected:
  void SetUp() override {
    EvidenceStore store = open();
    future_ = put(store, kStart, 10, ".mp4", "future");
    fs::last_write_time(folder_ / future_, std::chrono::file_clock::from_sys(kStart + 24h * 3650));
  }

  EvidenceStore open() {
    clocks_.emplace_back(clock_);
    return EvidenceStore({.dir = folder_, .budget = 1000, .max_age = 24h, .free_bytes = {}}, clocks_.back());
  }

  void pass(EvidenceStore& store, base::Duration time) {
    for (base::Duration passed(0); passed < time; passed += 1min) {
      clock_.advance(1min);
      store.tidy();
    }
  }

  /// A process that lives so long, and keeps a file in the beginning.
  std::string live(base::Duration time) {
    EvidenceStore store = open();
    const std::string file = put(store, clock_.wall(), 10, ".mp4", std::to_string(++processes_));
    pass(store, time);
    return file;
  }

  media::Scratch scratch_;
  fs::path folder_ = scratch_ / "evidence";
  ManualClock clock_;
  /// Of each process.
  std::list<config::RetentionClock> clocks_;
  std::string future_;
  int processes_ = 0;
};

TEST_F(AfterAWrongClock, WhatIsKeptGrowsOldHoweverOftenTheProcessStarts) {
  std::vector<std::string> files;
  for (int i = 0; i < 24; ++i) files.push_back(live(1h));
  EXPECT_THAT(files_below(folder_), Contains(future_));
  // What the first one lived before it was killed and had not written down yet.
  for (int i = 0; i < 5; ++i) files.push_back(live(1h));
  const auto left = files_below(folder_);
  EXPECT_THAT(left, Not(Contains(future_)));
  EXPECT_THAT(left, Not(Contains(files[0])));
  for (std::size_t i = 6; i < files.size(); ++i) EXPECT_THAT(left, Contains(files[i])) << i;
  for (int i = 0; i < 25; ++i) live(1h);
  EXPECT_LE(files_below(folder_).size(), 28U) << "so it goes on";
}

TEST_F(AfterAWrongClock, OnAFullDiskTheyAreNotNotedAndNothingEnds) {
  EvidenceStore store = open();
  const fs::path unfinished = folder_ / ".part-.ages";
  fs::create_symlink("/dev/full", unfinished);
  // Until it was tried, and what could not be finished was removed.
  for (int minutes = 0; minutes < 60 && fs::is_symlink(unfinished); ++minutes)
    ASSERT_NO_THROW(pass(store, 1min));
  EXPECT_FALSE(fs::is_symlink(unfinished));
  EXPECT_FALSE(fs::exists(folder_ / ".ages"));
  EXPECT_THAT(files_below(folder_), Contains(future_));
  pass(store, 1h);
  EXPECT_TRUE(fs::exists(folder_ / ".ages")) << "when there is room again";
}

TEST_F(AfterAWrongClock, OnlyTimeThatProcessesLivedCounts) {
  std::vector<std::string> files = {future_};
  for (int i = 0; i < 5; ++i) {
    files.push_back(live(3h));
    // The machine starts in 2002, and is set right.
    clock_.jump(i % 2 == 0 ? -24h * 365 * 24 : 24h * 365 * 24);
  }
  clock_.jump(24h * 365 * 24);
  clock_.advance(240h);
  for (int i = 0; i < 2; ++i) files.push_back(live(3h));
  EXPECT_THAT(files_below(folder_), UnorderedElementsAreArray(files));
}

TEST_F(AfterAWrongClock, WhatWasKeptFirstGoesFirst) {
  for (int i = 0; i < 3; ++i) live(1h);
  EvidenceStore store = open();
  store.make_room(980);
  EXPECT_EQ(store.bytes(), 20U);
  EXPECT_THAT(files_below(folder_), Not(Contains(future_)));
}

TEST_F(AfterAWrongClock, AgesThatAreDamagedCountForNone) {
  for (int i = 0; i < 20; ++i) live(1h);
  std::fstream file(folder_ / ".ages", std::ios::in | std::ios::out);
  ASSERT_TRUE(file.good());
  file << '9';
  file.close();
  for (int i = 0; i < 20; ++i) live(1h);
  EXPECT_THAT(files_below(folder_), Contains(future_)) << "it is too young, for all that is known";
  for (int i = 0; i < 10; ++i) live(1h);
  EXPECT_THAT(files_below(folder_), Not(Contains(future_)));
}

TEST_F(AfterAWrongClock, NothingIsLeftOfTheAgesWhenNobodyNeedsThem) {
  live(1h);
  EXPECT_TRUE(fs::exists(folder_ / ".ages"));
  EXPECT_EQ(fs::status(folder_ / ".ages").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EvidenceStore store = open();
  store.make_room(1000);
  pass(store, 1h);
  EXPECT_FALSE(fs::exists(folder_ / ".ages"));
}

}  // namespace
}  // namespace vigil::actors
