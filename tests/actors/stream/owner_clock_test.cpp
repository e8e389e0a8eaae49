// A camera's stream goes on over its owners, each of which tells time by a clock of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/stream/window_desk.h"
#include "tests/actors/patches.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;

struct OwnerClockTest : ::testing::Test {
  OwnerClockTest() { desk.grant(1000); }

  WatchPtr owned(std::uint64_t fence) {
    const WatchPtr watch = watched(*camera("gate", config::Pace::realtime), version_of(fence, 1));
    desk.know(watch);
    return watch;
  }
  /// The ends of windows that are answered.
  std::vector<double> ends() {
    while (desk.due()) desk.work({clock.now()});
    std::vector<double> ends;
    for (const auto& each : desk.take_news().answered) ends.push_back(each.window->end);
    return ends;
  }

  ManualClock clock;
  ScriptedLanguage language;
  WindowDesk desk{language.desk, language.questions, {}};
};

TEST_F(OwnerClockTest, AClockThatWasAheadCostsTheNextOwnerNothing) {
  desk.join(owned(1));
  const WatchPtr ahead = owned(2);
  EXPECT_FALSE(desk.push(*visual_patch(ahead, 600)).refused);
  EXPECT_FALSE(desk.push(*visual_patch(ahead, 601)).refused);
  EXPECT_THAT(ends(), ElementsAre(602));

  const WatchPtr right = owned(3);
  for (const double second : {10, 11, 12, 13}) EXPECT_FALSE(desk.push(*visual_patch(right, second)).refused);
  EXPECT_THAT(ends(), ElementsAre(14)) << "it overtook the one before";
  EXPECT_TRUE(desk.push(*visual_patch(right, 12)).refused) << "a duplicate";
}

TEST_F(OwnerClockTest, ClocksThatAreNearlyTheSameShareTheStream) {
  desk.join(owned(1));
  const WatchPtr one = owned(1);
  for (const double second : {10, 11, 12, 13}) desk.push(*visual_patch(one, second));
  EXPECT_THAT(ends(), ElementsAre(14)) << "it overtook the one before";
  const WatchPtr next = owned(2);
  EXPECT_TRUE(desk.push(*visual_patch(next, 12)).refused) << "seen already";
  EXPECT_FALSE(desk.push(*visual_patch(next, 14)).refused);
  EXPECT_FALSE(desk.push(*visual_patch(next, 15)).refused);
  desk.push(*visual_patch(next, 15.5));
  EXPECT_THAT(ends(), ElementsAre(16)) << "which has what came before, too";
}

TEST_F(OwnerClockTest, AnOwnersOwnStreamNeverGoesBack) {
  desk.join(owned(1));
  const WatchPtr own = owned(1);
  desk.push(*visual_patch(own, 600));
  EXPECT_TRUE(desk.push(*visual_patch(own, 10)).refused);
  EXPECT_FALSE(desk.push(*visual_patch(own, 601)).refused);
}

}  // namespace
}  // namespace vigil::actors
