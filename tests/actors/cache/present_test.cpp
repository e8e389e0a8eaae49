// Questions about what the windows of a camera still show.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cache/present_book.h"
#include "tests/actors/cache/asked_cache.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct PresentTest : AskedCache {
  PresentTest() {
    desk->watch(watch_of_tenant("city", "gate"));
    see(kGate, 0, 80);
    shows = [](const Show&) {};
  }
  std::uint64_t ask_until(std::int64_t second, const std::string& camera = "gate") {
    return ask(question({camera, "city"}, "Did a car stop?", from_begin(second - 40, second)));
  }
  bool is_answered(std::uint64_t ticket) {
    settle();
    for (const PastReply& each : heard.replies)
      if (each.ticket == ticket && each.outcome == PastOutcome::answer) return true;
    return false;
  }
  std::vector<std::uint64_t> tickets_of_shows() const {
    std::vector<std::uint64_t> all;
    for (const Show& each : unshown) all.push_back(each.ticket);
    return all;
  }
};

TEST_F(PresentTest, AQuestionAboutItWaitsUntilItHasCome) {
  clock.jump(-100s);
  const std::uint64_t ticket = ask_until(100);
  ASSERT_THAT(unshown, SizeIs(1));
  EXPECT_EQ(unshown[0].camera, "gate");
  EXPECT_EQ(desk->open_questions(), 1U);
  EXPECT_FALSE(is_answered(ticket));
  clock.advance(500ms);
  see(kGate, 80, 96);
  EXPECT_FALSE(is_answered(ticket)) << "more may come";
  show();
  EXPECT_TRUE(is_answered(ticket));
  const json told = answer(ticket);
  EXPECT_NEAR(told.at("coverage").at("share").get<double>(), 0.9, 0.01) << "until 96 s of 60 s to 100 s";
  EXPECT_EQ(told.at("seconds").at("find"), 0.5) << "until it was known what is there";
  EXPECT_EQ(told.at("seconds").at("total"), 0.5);
}

TEST_F(PresentTest, WhatHasComeIsNotWaitedFor) {
  EXPECT_TRUE(is_answered(ask_until(80)));
  EXPECT_THAT(unshown, IsEmpty());
  // Nor what was lost, as far as that was told.
  LeftPages left;
  left.news.lost = {{kGate, memory::Forgotten::no_room, 8, from_begin(80, 88)}};
  desk->take(left);
  EXPECT_TRUE(is_answered(ask_until(88)));
  EXPECT_THAT(unshown, IsEmpty());
  EXPECT_FALSE(is_answered(ask_until(89)));
  EXPECT_THAT(unshown, SizeIs(1));
}

TEST_F(PresentTest, CamerasThatAreNotWatchedShowNothing) {
  desk->end("gate");
  EXPECT_TRUE(is_answered(ask_until(100)));
  // One that another tenant has now.
  desk->watch(watch_of_tenant("village", "gate"));
  EXPECT_TRUE(is_answered(ask_until(100)));
  desk->watch(watch_of_tenant("city", "gate", 0s));
  EXPECT_TRUE(is_answered(ask_until(100)));
  EXPECT_THAT(unshown, IsEmpty());
}

TEST_F(PresentTest, NobodyWaitsLongerThanTwoSeconds) {
  const std::uint64_t ticket = ask_until(100);
  const std::vector<std::uint64_t> late = tickets_of_shows();
  clock.advance(1999ms);
  desk->tick();
  EXPECT_FALSE(is_answered(ticket));
  clock.advance(1ms);
  desk->tick();
  EXPECT_TRUE(is_answered(ticket)) << "with what is there";
  EXPECT_EQ(answer(ticket).at("coverage").at("gaps").at(0).at("why"), "down");
  // What is told too late is nobody's business; the next question is told of the next time.
  const std::uint64_t next = ask_until(100);
  ASSERT_THAT(unshown, SizeIs(2));
  desk->shown(late.front());
  EXPECT_FALSE(is_answered(next));
  desk->shown(unshown.back().ticket);
  EXPECT_TRUE(is_answered(next));
}

TEST_F(PresentTest, ACameraIsShownOnceASecondAtMost) {
  const std::uint64_t one = ask_until(100);
  clock.advance(900ms);
  const std::uint64_t two = ask_until(101);
  ASSERT_THAT(unshown, SizeIs(1)) << "it waits for the same";
  EXPECT_FALSE(is_answered(two));
  show();
  EXPECT_TRUE(is_answered(one));
  EXPECT_TRUE(is_answered(two));
  clock.advance(99ms);
  EXPECT_TRUE(is_answered(ask_until(101))) << "what is there now will do";
  EXPECT_THAT(unshown, IsEmpty());
  clock.advance(1ms);
  EXPECT_FALSE(is_answered(ask_until(101)));
  EXPECT_THAT(unshown, SizeIs(1));
  // Another camera has nothing to do with it.
  desk->watch(watch_of_tenant("city", "yard"));
  EXPECT_FALSE(is_answered(ask_until(101, "yard")));
  EXPECT_THAT(unshown, SizeIs(2));
}

TEST_F(PresentTest, WhoGivesUpIsNotAskedFor) {
  const std::uint64_t one = ask_until(100), two = ask_until(100);
  EXPECT_EQ(desk->open_questions(), 2U);
  desk->forget(one);
  EXPECT_EQ(desk->open_questions(), 1U);
  show();
  EXPECT_TRUE(is_answered(two));
  EXPECT_FALSE(is_answered(one));
  EXPECT_EQ(desk->open_questions(), 0U);
}

TEST_F(PresentTest, WhatIsErasedMeanwhileIsNotTold) {
  clock.jump(-100s);
  const std::uint64_t ticket = ask_until(100);
  ask(PastErasure{{"gate", "city"}, {from_begin(0, 100).from, from_begin(0, 100).to}});
  see(kGate, 80, 96);
  show();
  EXPECT_TRUE(is_answered(ticket));
  EXPECT_EQ(answer(ticket).at("answer"), nullptr);
  EXPECT_EQ(answer(ticket).at("coverage").at("share"), 0);
}

TEST_F(PresentTest, AnErasureEndsThePageThatIsBeingGathered) {
  clock.jump(-104500ms);
  const auto erase = [&](std::int64_t to) { return ask(PastErasure{{"gate", "city"}, from_begin(0, to)}); };
  erase(80);
  EXPECT_THAT(unshown, IsEmpty()) << "all of it has come";
  erase(100);
  ASSERT_THAT(unshown, SizeIs(1));
  EXPECT_EQ(unshown[0].camera, "gate");
  EXPECT_EQ(desk->open_questions(), 0U) << "nobody waits for it";
  see(kGate, 80, 96);
  show();
  see(kGate, 96, 104);
  clock.advance(8s);
  const std::uint64_t ticket = ask_until(103);
  EXPECT_TRUE(is_answered(ticket));
  EXPECT_EQ(answer(ticket).at("coverage").at("gaps").size(), 1U) << "what came next is there";
  EXPECT_EQ(answer(ticket).at("coverage").at("gaps").at(0).at("why"), "erased");
  EXPECT_EQ(answer(ticket).at("coverage").at("gaps").at(0).at("to"), "2026-08-01T10:01:35.999Z");
  desk->end("gate");
  erase(104);
  EXPECT_THAT(unshown, IsEmpty()) << "nothing of it is being gathered";
}

TEST_F(PresentTest, WhatHasNoKeysBeforeTheNextWindowIsComing) {
  auto watch = std::make_shared<WatchSettings>(*watch_of_tenant("city", "gate"));
  watch->window.stride = 30s;
  desk->watch(watch);
  clock.jump(-91s);
  const auto gap = [&](std::int64_t second) {
    const std::uint64_t ticket = ask_until(second);
    show();
    EXPECT_TRUE(is_answered(ticket));
    return answer(ticket).at("coverage").at("gaps").at(0).at("why").get<std::string>();
  };
  EXPECT_EQ(gap(109), "coming");
  clock.advance(3s);
  EXPECT_EQ(gap(112), "coming");
  clock.advance(2s);
  EXPECT_EQ(gap(114), "down") << "a stride ago it would have come";
}

TEST_F(PresentTest, ALittleBeforeNowIsNotMissingOfACameraThatIsWatched) {
  clock.jump(-118s);
  see(kGate, 80, 80);
  const auto share = [&](std::int64_t second) {
    const std::uint64_t ticket = ask_until(second);
    show();
    EXPECT_TRUE(is_answered(ticket));
    return answer(ticket).at("coverage").at("share").get<double>();
  };
  EXPECT_EQ(share(82), 1) << "as between two pages";
  EXPECT_EQ(share(86), 1) << "what is to come is cut off";
  clock.advance(2s);
  EXPECT_NEAR(share(84), 1 - 4 / 40.0, 0.001) << "it has seen nothing for too long";
  clock.jump(-2s);
  desk->end("gate");
  EXPECT_NEAR(share(82), 1 - 2 / 40.0, 0.001);
}

TEST(PresentBookTest, AClockThatIsSetBackDoesNotEndIt) {
  ManualClock clock;
  PresentBook book(clock);
  const history::CameraId gate{"city", "gate"};
  book.has_come(gate, from_begin(0, 100).to);
  EXPECT_FALSE(book.waits(1, gate, from_begin(0, 90)));
  book.has_come(gate, from_begin(0, 40).to);
  EXPECT_TRUE(book.waits(2, gate, from_begin(0, 90)));
  EXPECT_THAT(book.take_shows(), SizeIs(1));
  EXPECT_THAT(book.take_shows(), IsEmpty());
  EXPECT_THAT(book.shown(17), IsEmpty());
  EXPECT_THAT(book.shown(1), ElementsAre(2));
  EXPECT_THAT(book.shown(1), IsEmpty()) << "once";
}

}  // namespace
}  // namespace vigil::actors
