// Whose windows are told while a stream moves.
#include "fleet/turns/window_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WindowTurnsTest : public ::testing::Test {
 protected:
  WindowTurnsTest() {
    for (const char* const device : {"a", "b", "c"}) turns_.up(device);
  }
  /// Windows of 4 s, as its settings say. `shown`: when its last frame ends, beside its end.
  actors::WindowAnswersPtr window(double end, int frames, const std::string& camera = "gate",
                                  double shown = 0) const {
    auto settings = std::make_shared<actors::WatchSettings>(*actors::testing::watch(camera, version_));
    settings->window = {.length = std::chrono::seconds(4), .stride = std::chrono::seconds(1)};
    auto window = std::make_shared<actors::WindowAnswers>();
    window->watch = settings;
    window->start = std::max(0.0, end - 4);
    window->end = end;
    window->start_wall = wall(window->start);
    window->end_wall = wall(end + shown);
    window->frames = frames;
    return window;
  }
  static base::Clock::WallTime wall(double seconds) {
    return base::Clock::WallTime(std::chrono::hours(500'000)) +
           std::chrono::duration_cast<base::Clock::WallTime::duration>(
               std::chrono::duration<double>(seconds));
  }
  void hear(const WindowTurns::News& news) {
    for (const auto& [device, each] : news.told)
      told_.push_back(device + ' ' + std::to_string(static_cast<int>(each->end)));
    for (const auto& [device, each] : news.dropped)
      dropped_.push_back(device + ' ' + std::to_string(static_cast<int>(each->end)));
    ended_.insert(ended_.end(), news.ended.begin(), news.ended.end());
  }
  void take(const std::string& device, double end, int frames = 8, double shown = 0) {
    hear(turns_.take(device, window(end, frames, "gate", shown)));
  }
  void plan(const std::string& device, const std::string& former = "", std::uint64_t fence = 0) {
    hear(turns_.plan({{"gate", {device, former, fence}}}));
  }
  std::vector<std::string> told() { return std::exchange(told_, {}); }
  std::vector<std::string> dropped() { return std::exchange(dropped_, {}); }

  WindowTurns turns_;
  /// Of the camera's settings.
  std::uint64_t version_ = 1;
  std::vector<std::string> told_, dropped_, ended_;
};

TEST_F(WindowTurnsTest, OfACameraThatNeverMovedAllPasses) {
  plan("a");
  for (const double end : {5.0, 4.0, 4.0}) take("a", end);
  EXPECT_THAT(told(), ElementsAre("a 5", "a 4", "a 4")) << "others judge them";
  EXPECT_TRUE(turns_.end("a", "gate"));
  EXPECT_THAT(turns_.filled(), IsEmpty());
}

TEST_F(WindowTurnsTest, TheFormersCountUntilTheOthersHaveAsManyFrames) {
  plan("a");
  take("a", 10);
  plan("b", "a", 7);
  take("a", 11);
  take("b", 11, 2);
  take("b", 12, 4);
  take("a", 12);
  EXPECT_THAT(told(), ElementsAre("a 10", "a 11", "a 12"));
  EXPECT_THAT(turns_.filled(), IsEmpty());
  take("a", 13);
  take("b", 13, 8);
  EXPECT_THAT(turns_.filled(), ElementsAre(7));
  take("a", 14);
  take("b", 14);
  take("b", 15);
  EXPECT_THAT(told(), ElementsAre("a 13", "b 14", "b 15"));
  EXPECT_THAT(dropped(), ElementsAre("b 11", "b 12", "b 13", "a 14")) << "each of them once";
  plan("b");
  EXPECT_THAT(turns_.filled(), IsEmpty()) << "nobody waits for it any more";
  take("a", 16);
  take("b", 16);
  EXPECT_THAT(told(), ElementsAre("b 16"));
}

TEST_F(WindowTurnsTest, WhatIsAheadOfTheFormerWaitsForIt) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 11);
  take("b", 12);
  EXPECT_THAT(told(), ElementsAre("a 10"));
  take("a", 11);
  EXPECT_THAT(told(), ElementsAre("a 11", "b 12")) << "full at 11, so that 12 counts";
  EXPECT_THAT(dropped(), ElementsAre("b 11"));
  take("a", 12);
  EXPECT_THAT(dropped(), ElementsAre("a 12"));
}

TEST_F(WindowTurnsTest, AFormerThatNeverAnswersIsWaitedForUntilTheOthersAreFull) {
  plan("b", "a", 7);
  for (const double end : {1.0, 2.0, 4.0}) take("b", end, 2);
  EXPECT_THAT(told(), IsEmpty());
  take("b", 5);
  EXPECT_THAT(told(), ElementsAre("b 1", "b 2", "b 4", "b 5")) << "4 s after its first";
  take("b", 6);
  EXPECT_THAT(told(), ElementsAre("b 6"));
  EXPECT_THAT(turns_.filled(), ElementsAre(7));
  take("a", 7);
  EXPECT_THAT(dropped(), ElementsAre("a 7"));
}

TEST_F(WindowTurnsTest, AFormerThatHasAnsweredIsWaitedForLonger) {
  plan("b", "a", 7);
  take("a", 1);
  for (const double end : {2.0, 3.0, 6.0, 7.0}) take("b", end);
  EXPECT_THAT(told(), ElementsAre("a 1"));
  take("a", 6);
  EXPECT_THAT(told(), ElementsAre("a 6", "b 7"));
}

TEST_F(WindowTurnsTest, OfAFormerThatIsGoneTheOthersCountAtOnce) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 10, 2);
  take("b", 11, 4);
  hear(turns_.down("a"));
  take("b", 12, 6);
  EXPECT_THAT(told(), ElementsAre("a 10", "b 11", "b 12"));
  EXPECT_THAT(turns_.filled(), IsEmpty());
  take("a", 11);
  EXPECT_THAT(told(), IsEmpty()) << "what came over a way that broke, and later";
  take("b", 13);
  take("b", 14);
  EXPECT_THAT(turns_.filled(), ElementsAre(7)) << "four seconds after its first";
}

TEST_F(WindowTurnsTest, AFormerThatIsFarBehindIsLeft) {
  plan("b", "a", 7);
  take("a", 10);
  for (int i = 0; i < 8; ++i) take("b", 11 + i, 2);
  EXPECT_THAT(told(), ElementsAre("a 10"));
  take("b", 19, 2);
  EXPECT_EQ(told().size(), 9U);
  take("a", 11);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(WindowTurnsTest, WhereTheOtherOneIsGoneTheFormerGoesOn) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 11, 2);
  hear(turns_.down("b"));
  EXPECT_THAT(dropped(), ElementsAre("b 11"));
  take("a", 11);
  plan("c", "a", 8);
  take("c", 12, 2);
  take("a", 12);
  take("a", 13);
  take("c", 13);
  take("c", 14);
  EXPECT_THAT(told(), ElementsAre("a 10", "a 11", "a 12", "a 13", "c 14"));
  EXPECT_THAT(turns_.filled(), ElementsAre(8));
}

TEST_F(WindowTurnsTest, WhereTheFullOneIsGoneBeforeThePlanKnowsTheFormerGoesOn) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 10);
  take("b", 11);
  hear(turns_.down("b"));
  EXPECT_THAT(turns_.filled(), IsEmpty());
  take("a", 11);
  take("a", 12);
  EXPECT_THAT(told(), ElementsAre("a 10", "b 11", "a 12"));
}

TEST_F(WindowTurnsTest, OfOneStreamAllIsToldWhicheverTowerEncodes) {
  for (const char* const device : {"v1>s", "v2>s"}) turns_.up(device);
  plan("v1>s");
  take("v1>s", 10);
  plan("v2>s", "v1>s", 7);
  take("v1>s", 11);
  EXPECT_THAT(turns_.filled(), IsEmpty()) << "the former still encodes";
  take("v2>s", 12);
  EXPECT_THAT(turns_.filled(), ElementsAre(7U)) << "the other one does";
  take("v1>s", 13);
  take("v2>s", 13);
  EXPECT_THAT(told(), ElementsAre("v1>s 10", "v1>s 11", "v2>s 12", "v1>s 13"));
  EXPECT_THAT(dropped(), ElementsAre("v2>s 13")) << "no frame twice";
  plan("v2>s");
  take("v2>s", 14);
  EXPECT_THAT(told(), ElementsAre("v2>s 14"));
}

TEST_F(WindowTurnsTest, AStreamThatFillsGoesOnWithAnotherTower) {
  for (const char* const device : {"v1>s1", "v2>s2", "v3>s2"}) turns_.up(device);
  plan("v1>s1");
  take("v1>s1", 10);
  plan("v2>s2", "v1>s1", 7);
  take("v2>s2", 11, 4);
  take("v2>s2", 12, 8);
  plan("v3>s2", "v1>s1", 8);
  EXPECT_THAT(dropped(), IsEmpty()) << "what is held is the stream's";
  take("v2>s2", 13, 8);
  take("v1>s1", 11);
  EXPECT_THAT(told(), ElementsAre("v1>s1 10", "v1>s1 11"));
  EXPECT_THAT(dropped(), ElementsAre("v2>s2 11")) << "it had fewer frames";
  take("v1>s1", 12);
  EXPECT_THAT(told(), ElementsAre("v1>s1 12", "v2>s2 13")) << "from whoever they came";
  EXPECT_THAT(turns_.filled(), ElementsAre(8U));
}

TEST_F(WindowTurnsTest, OfOneStreamAThirdTowerIsWaitedFor) {
  for (const char* const device : {"v1>s", "v2>s", "v3>s"}) turns_.up(device);
  plan("v1>s");
  take("v1>s", 10);
  plan("v2>s", "v1>s", 7);
  take("v2>s", 11);
  EXPECT_THAT(turns_.filled(), ElementsAre(7U));
  plan("v3>s", "v1>s", 8);
  take("v2>s", 12);
  take("v1>s", 13);
  EXPECT_THAT(turns_.filled(), IsEmpty());
  take("v3>s", 14);
  EXPECT_THAT(told(), ElementsAre("v1>s 10", "v2>s 11", "v2>s 12", "v1>s 13", "v3>s 14"));
  EXPECT_THAT(turns_.filled(), ElementsAre(8U));
}

TEST_F(WindowTurnsTest, OfOneStreamTheEndOfEitherIsTheCameras) {
  for (const char* const device : {"v1>s", "v2>s"}) {
    plan("v2>s", "v1>s", 7);
    EXPECT_FALSE(turns_.end("v1>other", "gate"));
    EXPECT_TRUE(turns_.end(device, "gate"));
    EXPECT_FALSE(turns_.end("v2>s", "gate")) << "once";
    turns_.plan({});
  }
}

TEST_F(WindowTurnsTest, AStreamThatGoesBackIsItsFormersAgain) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 11);
  plan("a", "", 8);
  EXPECT_THAT(dropped(), ElementsAre("b 11"));
  take("a", 11);
  take("b", 12);
  take("a", 12);
  EXPECT_THAT(told(), ElementsAre("a 10", "a 11", "a 12"));
}

TEST_F(WindowTurnsTest, OneThatMovedMovesOn) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 10);
  plan("b");
  take("b", 11);
  plan("c", "b", 9);
  take("b", 12);
  take("c", 12, 2);
  take("b", 13);
  take("c", 13);
  take("c", 14);
  EXPECT_THAT(told(), ElementsAre("a 10", "b 11", "b 12", "b 13", "c 14"));
  EXPECT_THAT(turns_.filled(), ElementsAre(9));
}

TEST_F(WindowTurnsTest, AFormerThatThePlanDropsLeavesWhatIsHeld) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 11, 2);
  plan("b", "", 7);
  EXPECT_THAT(told(), ElementsAre("a 10", "b 11"));
}

TEST_F(WindowTurnsTest, ACameraEndsOnceWithWhoeverAnswers) {
  plan("b", "a", 7);
  take("a", 10);
  EXPECT_FALSE(turns_.end("b", "gate"));
  EXPECT_TRUE(turns_.end("a", "gate"));
  EXPECT_FALSE(turns_.end("a", "gate"));
  EXPECT_FALSE(turns_.end("c", "gate")) << "it is not there any more";
  version_ = 2;
  take("a", 2);
  EXPECT_THAT(told(), ElementsAre("a 10", "a 2")) << "it began anew, as did its time";
  take("b", 2);
  EXPECT_TRUE(turns_.end("b", "gate"));
  EXPECT_FALSE(turns_.end("a", "gate"));
}

TEST_F(WindowTurnsTest, AnEndThatOnlyTheOtherToldCountsWhenTheFormerIsGone) {
  plan("b", "a", 7);
  EXPECT_FALSE(turns_.end("b", "gate"));
  hear(turns_.down("a"));
  EXPECT_THAT(ended_, ElementsAre("gate"));
  hear(turns_.down("a"));
  EXPECT_THAT(ended_, ElementsAre("gate")) << "once";
}

// Two devices count strides from the frames that they began with: one that is near the end of a stride may be
// the last of a window here, and of the next one there.
TEST_F(WindowTurnsTest, AFrameThatTheFormerHasShownLastIsNotTheLastOneAgain) {
  for (const bool is_ahead : {false, true}) {
    plan("b", "a", 7);
    if (is_ahead) take("b", 10, 8, -0.9);
    if (is_ahead) take("b", 11, 8, -0.9);
    take("a", 10, 8, 0.1);
    if (!is_ahead) take("b", 10, 8, -0.9);
    if (!is_ahead) take("b", 11, 8, -0.9);
    take("b", 12, 8, -0.9);
    EXPECT_THAT(told(), ElementsAre("a 10", "b 12")) << is_ahead;
    EXPECT_THAT(dropped(), ElementsAre("b 10", "b 11"));
    hear(turns_.plan({}));
  }
}

TEST_F(WindowTurnsTest, AFrameThatTheFormerHasNotShownIsTold) {
  for (const bool is_ahead : {false, true}) {
    plan("b", "a", 7);
    if (is_ahead) take("b", 10, 8, 0.1);
    take("a", 10, 8, -0.9);
    if (!is_ahead) take("b", 10, 8, 0.1);
    take("b", 11, 8, 0.1);
    take("a", 11, 8, -0.9);
    EXPECT_THAT(told(), ElementsAre("a 10", "b 10", "b 11")) << is_ahead;
    EXPECT_THAT(dropped(), ElementsAre("a 11"));
    hear(turns_.plan({}));
  }
}

TEST_F(WindowTurnsTest, AFormerThatIsGoneIsFollowedByWhatItHasNotShown) {
  plan("b", "a", 7);
  take("a", 10, 8, 0.1);
  hear(turns_.down("a"));
  take("b", 11, 2, -0.9);
  take("b", 12, 4, -0.9);
  EXPECT_THAT(told(), ElementsAre("a 10", "b 12"));
}

TEST_F(WindowTurnsTest, WhatIsLeftOfACameraThatHasEndedIsNotTold) {
  plan("b", "a", 7);
  take("a", 10);
  take("a", 11);
  take("b", 12);
  EXPECT_TRUE(turns_.end("a", "gate"));
  take("b", 10);
  take("b", 11);
  EXPECT_THAT(told(), ElementsAre("a 10", "a 11")) << "with the end, all is told";
  version_ = 2;
  take("b", 3, 2);
  take("a", 3, 2);
  take("b", 4, 4);
  EXPECT_THAT(told(), ElementsAre("b 3", "b 4")) << "it began anew, as did its time";
  EXPECT_THAT(dropped(), ElementsAre("b 10", "b 12", "b 11", "a 3"));
}

TEST_F(WindowTurnsTest, AnEndAheadOfTheFormersLastWindowsIsTheCamerasWhenTheseAreFull) {
  plan("b", "a", 7);
  take("a", 10);
  take("b", 11);
  EXPECT_FALSE(turns_.end("b", "gate"));
  take("a", 11);
  EXPECT_THAT(ended_, ElementsAre("gate")) << "from here on nothing counts that the former says";
  EXPECT_FALSE(turns_.end("a", "gate"));
  hear(turns_.down("a"));
  EXPECT_THAT(ended_, ElementsAre("gate")) << "once";
}

TEST_F(WindowTurnsTest, AnEndThatTheFormerHasToldIsNotToldAgainLater) {
  plan("b", "a", 7);
  take("a", 10);
  EXPECT_TRUE(turns_.end("a", "gate"));
  EXPECT_FALSE(turns_.end("b", "gate"));
  version_ = 2;
  take("a", 20);
  hear(turns_.down("a"));
  plan("b");
  EXPECT_THAT(ended_, IsEmpty()) << "it runs";
}

TEST_F(WindowTurnsTest, OfACameraThatHasNoFormerTheEndCountsWhereItIs) {
  EXPECT_TRUE(turns_.end("a", "gate")) << "as it does of one that no plan has";
  plan("a");
  plan("b");
  EXPECT_FALSE(turns_.end("a", "gate")) << "its end follows where it has moved to";
  EXPECT_TRUE(turns_.end("b", "gate"));
  plan("");
  EXPECT_TRUE(turns_.end("a", "gate")) << "it is refused, say";
}

TEST_F(WindowTurnsTest, ACameraThatComesBackBeginsWithNothingTold) {
  plan("b", "a", 7);
  take("a", 10);
  hear(turns_.plan({}));
  plan("b", "a", 9);
  take("a", 2);
  EXPECT_THAT(told(), ElementsAre("a 10", "a 2"));
}

TEST_F(WindowTurnsTest, CamerasAreApart) {
  hear(turns_.plan({{"gate", {"b", "a", 7}}, {"yard", {"b", "a", 8}}}));
  take("a", 10);
  take("b", 10);
  hear(turns_.take("b", window(10, 2, "yard")));
  hear(turns_.take("a", window(10, 8, "yard")));
  EXPECT_THAT(told(), ElementsAre("a 10", "a 10"));
  EXPECT_THAT(turns_.filled(), ElementsAre(7));
}

TEST_F(WindowTurnsTest, AFormerThatCannotBeReachedIsNotWaitedFor) {
  plan("b", "gone", 7);
  take("b", 10, 2);
  EXPECT_THAT(told(), ElementsAre("b 10"));
  EXPECT_TRUE(turns_.end("b", "gate")) << "nobody else would say so";
  version_ = 2;
  plan("a");
  hear(turns_.down("a"));
  plan("b", "a", 8);
  take("b", 20, 2);
  EXPECT_THAT(told(), ElementsAre("b 20"));
  turns_.up("a");
  plan("a");
  plan("c", "a", 9);
  take("c", 30, 2);
  EXPECT_THAT(told(), IsEmpty()) << "it can be reached again";
}

TEST_F(WindowTurnsTest, AnEndThatWaitsForAFormerIsToldWhenThatIsNoneAnyMore) {
  plan("a");
  take("a", 10);
  plan("b", "a", 7);
  EXPECT_FALSE(turns_.end("b", "gate"));
  plan("b", "a", 7);
  EXPECT_THAT(ended_, IsEmpty());
  plan("c", "b", 8);
  EXPECT_THAT(ended_, ElementsAre("gate"));
  EXPECT_FALSE(turns_.end("a", "gate")) << "once";
}

TEST_F(WindowTurnsTest, OfACameraThatBeganAnewInAnotherTenureNoFormerIsWaitedFor) {
  const auto take_of = [&](const std::string& device, std::uint64_t fence, double end, int frames = 8) {
    auto made = std::make_shared<actors::WindowAnswers>(*window(end, frames));
    auto settings = std::make_shared<actors::WatchSettings>(*made->watch);
    settings->version = actors::version_of(fence, 1);
    made->watch = settings;
    hear(turns_.take(device, made));
  };
  plan("b", "a", 7);
  take_of("a", 3, 600);
  take_of("b", 3, 601, 2);
  EXPECT_THAT(told(), ElementsAre("a 600"));
  take_of("b", 9, 5, 2);
  take_of("b", 9, 6, 2);
  EXPECT_THAT(told(), ElementsAre("b 601", "b 5", "b 6")) << "its time began anew";
  take_of("a", 3, 602);
  take_of("b", 9, 6);
  EXPECT_THAT(dropped(), ElementsAre("a 602", "b 6"));
  EXPECT_THAT(told(), IsEmpty());
  take_of("b", 9, 10);
  EXPECT_THAT(turns_.filled(), ElementsAre(7));
}

TEST_F(WindowTurnsTest, ACameraThatThereIsNoNodeForStaysWhereItIs) {
  plan("b", "gone", 7);
  take("b", 10);
  plan("");
  take("b", 11);
  EXPECT_THAT(told(), ElementsAre("b 10", "b 11"));
  EXPECT_TRUE(turns_.end("b", "gate"));
}

}  // namespace
}  // namespace vigil::fleet
