// That a reason for what is missing is a true one.
#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/memory/kept_world.h"

namespace vigil::memory {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::IsEmpty;
using Gaps = std::vector<KnownGap>;

struct MemoryReasonsTest : testing::KeptWorld {
  MemoryReasonsTest() { remembered->watch(kHall, hours(2)); }
};

TEST_F(MemoryReasonsTest, BeforeTheFirstPageThatEverCameNobodySawAnything) {
  for (const double from : {0, 10, 120, 180}) see(from);
  write();
  const auto are_right = [&](double now) {
    EXPECT_EQ(gaps(now, -100, now), (Gaps{{between(-100, 0), Gap::down},
                                          {between(0, 20), Gap::evicted},
                                          {between(20, 120), Gap::down},
                                          {between(130, 180), Gap::down},
                                          {between(190, now), Gap::down}}));
  };
  EXPECT_FALSE(age(190).empty());
  EXPECT_EQ(store.pages(kHall, between(0, 200)).size(), 2U);
  are_right(191);
  EXPECT_TRUE(age(191).empty());
  begin();
  are_right(191);
  remembered->watch(kHall, hours(2));
  EXPECT_TRUE(age(192).empty());
  are_right(192);
  // Of what is over later, one remains with what was before.
  EXPECT_FALSE(age(330).empty());
  const Gaps over{
      {between(-100, 0), Gap::down}, {between(0, 130), Gap::evicted}, {between(130, 180), Gap::down}};
  EXPECT_EQ(gaps(300, -100, 190), over);
  EXPECT_EQ(store.notes(kHall, between(-1000, 1000)).size(), 1U);
  begin();
  EXPECT_EQ(gaps(300, -100, 190), over);
  // With no page left, what came after the last one is not evicted, either.
  remembered->watch(kHall, hours(2));
  EXPECT_FALSE(age(1000).empty());
  begin();
  EXPECT_EQ(
      gaps(1000, -100, 500),
      (Gaps{{between(-100, 0), Gap::down}, {between(0, 190), Gap::evicted}, {between(190, 500), Gap::down}}));
}

TEST_F(MemoryReasonsTest, BeforeWhatWasErasedOrNeverWrittenNobodySawAnything) {
  store.fails = true;
  see(0);
  write();
  store.fails = false;
  for (const double from : {10, 20}) see(from);
  write();
  remembered->erase(kHall, between(10, 20), at(40));
  store.finish_erasures();
  age(41);
  begin();
  EXPECT_EQ(
      gaps(41, -10, 30),
      (Gaps{{between(-10, 0), Gap::down}, {between(0, 10), Gap::late}, {between(10, 20), Gap::erased}}));
}

TEST_F(MemoryReasonsTest, ThePageThatWasBeingGatheredIsErasedWhole) {
  see(0);
  write();
  remembered->erase(kHall, {at(5), INT64_MAX}, at(14));
  EXPECT_EQ(see(10).lost, Gap::erased);
  EXPECT_EQ(see(20).lost, std::nullopt);
  const Gaps expected{{between(-10, 0), Gap::down}, {between(0, 20), Gap::erased}};
  EXPECT_EQ(gaps(30, -10, 30), expected) << "pages go whole, at both ends";
  write();
  store.finish_erasures();
  age(30);
  begin();
  EXPECT_EQ(gaps(30, -10, 30), expected);
}

TEST_F(MemoryReasonsTest, WhatHasStillToComeIsComingAndNotDown) {
  remembered->watch(kHall, hours(2), minutes(4));
  see(0);
  EXPECT_THAT(gaps(10.04, 0, 10.04), IsEmpty()) << "as between two pages";
  const auto newest = [&](double now, Gap why) {
    const Gaps expected{{{at(10), at(now)}, why}};
    EXPECT_EQ(remembered->coverage(kHall, {at(0), at(now)}, at(now)).gaps, expected) << now;
  };
  newest(12, Gap::coming);
  newest(14, Gap::coming);
  newest(14.1, Gap::down);
  // Also of a range that is all newer than the last page.
  EXPECT_EQ(gaps(14, 13, 14), (Gaps{{between(13, 14), Gap::coming}}));
  // What is known is told.
  remembered->lose({kHall, Forgotten::no_room, 3, between(10, 11)});
  EXPECT_EQ(gaps(12, 0, 12), (Gaps{{between(10, 11), Gap::late}, {between(11, 12), Gap::coming}}));
  remembered->erase(kHall, {at(9.5), INT64_MAX}, at(11.5));
  EXPECT_EQ(gaps(11.5, 0, 11.5), (Gaps{{between(0, 11.5), Gap::erased}}));
  see(30);
  remembered->leave(kHall);
  EXPECT_EQ(gaps(42, 30, 42), (Gaps{{between(40, 42), Gap::down}})) << "nothing comes of one that has ended";
}

TEST_F(MemoryReasonsTest, AnOrderThatWasRefusedIsOverWithTheOneThatTakesItsPlace) {
  for (const double from : {0, 10, 20}) see(from);
  write();
  store.fails = true;
  EXPECT_THROW(remembered->erase(kHall, {at(10), INT64_MAX}, at(12)), history::HistoryError);
  EXPECT_EQ(remembered->list(at(40)).front().disk_bytes, 0U) << "of its hour nothing is told";
  store.fails = false;
  // Without an end, it means more when it is given again.
  EXPECT_EQ(remembered->erase(kHall, {at(10), INT64_MAX}, at(13)), 1U);
  EXPECT_EQ(remembered->list(at(40)).front().disk_bytes, 2 * kPage) << "something is left of it";
  store.finish_erasures();
  begin();
  EXPECT_THAT(found(40, between(0, 100)), ::testing::ElementsAre("0 to 10", "20 to 30"));
}

TEST_F(MemoryReasonsTest, BeforeAPageThatHasComeNothingComesAnyMore) {
  remembered->watch(kHall, hours(2), minutes(4));
  see(0);
  EXPECT_EQ(gaps(12.5, 0, 11.5), (Gaps{{between(10, 11.5), Gap::coming}}));
  see(12);
  EXPECT_EQ(gaps(12.5, 0, 11.5), (Gaps{{between(10, 11.5), Gap::down}}))
      << "though it lies behind the question";
}

TEST_F(MemoryReasonsTest, BehindNowAllIsComingButWhatAFileHasShown) {
  remembered->watch(kHall, hours(2), minutes(4));
  see(0);
  EXPECT_EQ(gaps(10, 60, 90), (Gaps{{between(60, 90), Gap::coming}}));
  // A file that is read ahead of its time.
  for (const double from : {10, 20, 40}) see(from);
  EXPECT_EQ(gaps(10, 15, 90), (Gaps{{between(30, 40), Gap::down}, {between(50, 90), Gap::coming}}));
  remembered->leave(kHall);
  EXPECT_EQ(gaps(10, 45, 90), (Gaps{{between(50, 90), Gap::down}})) << "nothing comes of one that has ended";
}

}  // namespace
}  // namespace vigil::memory
