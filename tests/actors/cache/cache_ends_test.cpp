// The cache is alive, and comes to an end with what others give it last.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cache/cache_actor.h"
#include "tests/actors/cache/cache_world.h"

namespace vigil::actors {
namespace {

using namespace testing;
using kv::Form;
using std::chrono::hours;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(CacheActorTest, ItAndThoseWhoWaitForItsDiskSayThatTheyAreAlive) {
  begin();
  for (int i = 0; i < 40; ++i) pass(1s);
  EXPECT_THAT(board_.late(), IsEmpty());
  clock_.advance(31s);
  EXPECT_THAT(board_.late(), ElementsAre("cache", "cache reader 0", "cache reader 1", "cache writer"));
  EXPECT_TRUE(board_.live()) << "there are alerts without it";
  pass(1s);
  EXPECT_THAT(board_.late(), IsEmpty());
  stop();
  clock_.advance(1h);
  EXPECT_THAT(board_.late(), IsEmpty()) << "nothing depends on them any more";
}

TEST_F(CacheActorTest, ASlowDiskIsNotTakenForOneThatHangs) {
  begin();
  see(0, 80);
  bool was_written = false, was_read = false, was_verified = false;
  store_.while_putting = [&] {
    clock_.advance(9min);
    EXPECT_THAT(board_.late(), Not(Contains("cache writer")));
    clock_.advance(2min);
    EXPECT_THAT(board_.late(), Contains("cache writer"));
    was_written = true;
  };
  pass(11min);
  pass(1s);
  EXPECT_TRUE(was_written);
  EXPECT_THAT(board_.late(), IsEmpty());
  stop();
  begin();
  store_.while_reading = [&] {
    if (std::exchange(was_read, true)) return;
    clock_.advance(110s);
    EXPECT_THAT(board_.late(), Not(Contains("cache reader 0")));
    clock_.advance(20s);
    EXPECT_THAT(board_.late(), Contains("cache reader 0"));
  };
  Device& device = join("cuda:0");
  Asker& one = asker();
  ask(one, 1, question(8));
  answer(device);
  EXPECT_TRUE(was_read);
  pass(1s);
  EXPECT_THAT(board_.late(), IsEmpty());
  // Who verifies reads all there is.
  store_.while_reading = [&] {
    clock_.advance(5h);
    // The one that does not verify is late here, where one thread runs all of them.
    EXPECT_THAT(board_.late(), ElementsAre("cache", HasSubstr("cache reader"), "cache writer"));
    was_verified = true;
  };
  ask(one, 2, PastVerify{});
  EXPECT_TRUE(was_verified);
}

TEST_F(CacheActorTest, WhenItIsStoppedAllIsWrittenAndEverybodyEnds) {
  const std::size_t running = system_.registry().running();
  begin();
  EXPECT_EQ(system_.registry().running(), running + 4) << "with two readers and a writer";
  see(0, 80);
  // Nobody answers it any more.
  Asker& one = asker();
  ask(one, 1, question());
  stop();
  EXPECT_TRUE(has_ended());
  EXPECT_EQ(system_.registry().running(), running + 1) << "the asker";
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 80)), SizeIs(10));
}

TEST_F(CacheActorTest, WhatDevicesGiveLastIsWrittenToo) {
  begin();
  Device& device = join("cuda:0");
  stop();
  EXPECT_FALSE(has_ended());
  see(0, 8);
  caf::anon_send_exit(device.who, caf::exit_reason::user_shutdown);
  settle();
  EXPECT_TRUE(has_ended());
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 8)), SizeIs(1));
}

TEST_F(CacheActorTest, ADeviceThatDoesNotEndIsNotWaitedForLong) {
  begin();
  join("cuda:0");
  see(0, 8);
  stop();
  pass(1s);
  EXPECT_FALSE(has_ended());
  pass(1s);
  EXPECT_TRUE(has_ended());
  EXPECT_FALSE(inner_->hours(std::nullopt).empty());
}

TEST_F(CacheActorTest, WithoutADiskThereIsNobodyToWaitFor) {
  const std::size_t running = system_.registry().running();
  begin(/*with_store=*/false);
  EXPECT_EQ(system_.registry().running(), running + 1);
  see(0, 80);
  Device& device = join("cuda:0");
  EXPECT_THAT(device.wants, ElementsAre(ElementsAre(Form::fp8)));
  Asker& one = asker();
  ask(one, 1, question());
  answer(device, 6);
  EXPECT_EQ(last(one).at("answer"), "Yes");
  pass(1h);
  stop();
  EXPECT_TRUE(has_ended());
}

TEST_F(CacheActorTest, WhatIsOverNoMoreIsNotRemovedWhenTheDiskCanAgain) {
  begin();
  see(0, 80);
  pass(11min);
  ASSERT_THAT(store_.pages(kGate, from_begin(0, 80)), SizeIs(10));
  // An erasure that cannot be finished keeps all that is over waiting, too.
  store_.finishes = false;
  ask(asker(), 1, PastErasure{{"gate", {}}, from_begin(0, 8)});
  caf::anon_send(cache_, watch_of_tenant("city", "gate", hours(0)));
  settle();
  ASSERT_THAT(store_.pages(kGate, from_begin(8, 80)), SizeIs(9));
  see(700, 780);
  pass(11min);
  store_.finishes = true;
  pass(11min);
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 8)), IsEmpty());
  EXPECT_THAT(store_.pages(kGate, from_begin(700, 780)), SizeIs(10)) << "it is remembered again";
}

}  // namespace
}  // namespace vigil::actors
