// How long a camera's pages are kept, to the patch, and what a change of that does at once.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/memory/kept_world.h"

namespace vigil::memory {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Gaps = std::vector<KnownGap>;

struct MemoryKeepTest : testing::KeptWorld {
  MemoryKeepTest() { remembered->watch(kHall, hours(1)); }
};

TEST_F(MemoryKeepTest, WhatIsOlderIsFoundNoMoreWhereverItIs) {
  for (const double from : {0, 10, 20}) see(from);
  for (const char* const where : {"in the host's memory and on its way", "on the disk, too"}) {
    SCOPED_TRACE(where);
    EXPECT_THAT(found(60, between(0, 60)), ElementsAre("0 to 10", "10 to 20", "20 to 30"));
    EXPECT_THAT(found(75, between(0, 60)), ElementsAre("15 to 20", "20 to 30")) << "to the patch";
    EXPECT_THAT(found(75, between(0, 15)), IsEmpty()) << "nor by what is in its page";
    EXPECT_THAT(found(75.5, between(0, 60)), ElementsAre("16 to 20", "20 to 30"))
        << "none that is older in part";
    EXPECT_THAT(found(90, between(0, 60)), IsEmpty());
    EXPECT_EQ(gaps(75, -10, 30), (Gaps{{between(-10, 0), Gap::down}, {between(0, 15), Gap::evicted}}));
    EXPECT_EQ(gaps(90, 0, 40), (Gaps{{between(0, 30), Gap::evicted}, {between(30, 40), Gap::down}}));
    write();
  }
  begin();
  remembered->watch(kHall, hours(1));
  EXPECT_THAT(found(75, between(0, 60)), ElementsAre("15 to 20", "20 to 30")) << "on the disk alone";
  EXPECT_EQ(gaps(75, 0, 30), (Gaps{{between(0, 15), Gap::evicted}}));
}

TEST_F(MemoryKeepTest, WhatIsOlderIsNotListed) {
  for (const double from : {0, 10, 20, 60}) see(from);
  write();
  const auto listed = [&](double now) { return remembered->list(at(now)).front(); };
  EXPECT_EQ(listed(60).pages, 4U);
  EXPECT_EQ(listed(75).pages, 3U);
  EXPECT_EQ(listed(75).disk_bytes, 3 * kPage);
  EXPECT_EQ(listed(75).host_bytes, 3 * kPage);
  EXPECT_EQ(listed(75).wall, between(15, 70));
  EXPECT_EQ(listed(100).pages, 1U) << "an hour of which nothing is kept, and that is still there";
  EXPECT_EQ(listed(100).wall, between(60, 70));
  EXPECT_EQ(listed(200).pages, 0U);
  EXPECT_EQ(listed(200).wall, std::nullopt);
  begin();
  remembered->keep(kHall, hours(1));
  EXPECT_EQ(listed(75).wall, between(15, 70)) << "of the disk alone";
  EXPECT_THAT(remembered->list(at(200)), IsEmpty());
}

TEST_F(MemoryKeepTest, AChangeHoldsAtOnceAndOneThatNobodySaidDoesNot) {
  for (const double from : {0, 10}) see(from);
  write();
  remembered->watch(kHall, minutes(20));
  EXPECT_THAT(found(35, between(0, 60)), ElementsAre("15 to 20"));
  remembered->watch(kHall, hours(1));
  EXPECT_THAT(found(35, between(0, 60)), ElementsAre("0 to 10", "10 to 20"));
  begin();
  EXPECT_THAT(found(10'000, between(0, 60)), ElementsAre("0 to 10", "10 to 20")) << "in no configuration";
  remembered->keep(kHall, minutes(20));
  EXPECT_THAT(found(35, between(0, 60)), ElementsAre("15 to 20")) << "of one that is watched elsewhere";
}

TEST_F(MemoryKeepTest, OffIsNothingFromThatMomentOn) {
  for (const double from : {0, 10}) see(from);
  write();
  see(20);
  remembered->leave(kHall);
  remembered->keep(kHall, {});
  EXPECT_THAT(found(30, between(-100, 100)), IsEmpty());
  EXPECT_THAT(remembered->list(at(30)), IsEmpty());
  const Gaps expected{
      {between(-10, 0), Gap::down}, {between(0, 30), Gap::evicted}, {between(30, 40), Gap::down}};
  EXPECT_EQ(gaps(30, -10, 40), expected);
  EXPECT_EQ(see(30).lost, Gap::evicted) << "a page that comes late";
  write();
  EXPECT_EQ(store.pages(kHall, between(0, 100)).size(), 2U) << "what was on its way never came there";
  const Memory::Aged aged = age(31);
  ASSERT_EQ(aged.expiries.size(), 1U);
  EXPECT_THAT(store.pages(kHall, between(-100, 100)), IsEmpty()) << "its hours go, the newest, too";
  EXPECT_EQ(remembered->host().used(), 0U);
  EXPECT_TRUE(age(32).empty()) << "once";
  const Gaps after{
      {between(-10, 0), Gap::down}, {between(0, 40), Gap::evicted}, {between(40, 50), Gap::down}};
  EXPECT_EQ(gaps(32, -10, 50), after);
  begin();
  remembered->keep(kHall, {});
  EXPECT_EQ(gaps(32, -10, 50), after) << "and in the next run";
  EXPECT_TRUE(age(33).empty());
  // It is turned on again.
  remembered->watch(kHall, hours(1));
  see(40);
  EXPECT_THAT(found(50, between(-100, 100)), ElementsAre("40 to 50"));
}

TEST_F(MemoryKeepTest, WithoutADiskWhatIsOverIsEvictedToo) {
  begin(/*with_store=*/false);
  remembered->watch(kHall, hours(1));
  for (const double from : {0, 10, 20}) see(from);
  EXPECT_EQ(gaps(75, -10, 30), (Gaps{{between(-10, 0), Gap::down}, {between(0, 15), Gap::evicted}}));
  EXPECT_TRUE(remembered->age(at(75)).empty());
  EXPECT_TRUE(remembered->age(at(85)).empty());
  EXPECT_EQ(gaps(85, -10, 30), (Gaps{{between(-10, 0), Gap::down}, {between(0, 25), Gap::evicted}}));
  EXPECT_TRUE(remembered->age(at(200)).empty());
  EXPECT_EQ(
      gaps(200, -10, 40),
      (Gaps{{between(-10, 0), Gap::down}, {between(0, 30), Gap::evicted}, {between(30, 40), Gap::down}}));
}

}  // namespace
}  // namespace vigil::memory
