#include "config/running/retention_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::config {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr base::Clock::WallTime kStart{std::chrono::seconds(1785578400)};

class TwoClocks final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(1h) + passed; }
  WallTime wall() const override { return kStart + passed + ahead; }
  base::Duration passed{0};
  base::Duration ahead{0};
};

class RetentionClockTest : public ::testing::Test {
 protected:
  base::Duration known() { return std::chrono::duration_cast<base::Duration>(clock_.now() - kStart); }
  TwoClocks machine_;
  RetentionClock clock_{machine_};
};

TEST_F(RetentionClockTest, GoesOnWithTheMachinesClockAndFollowsWhatItCorrects) {
  EXPECT_EQ(known(), 0s);
  machine_.passed = 90min;
  EXPECT_EQ(known(), 90min);
  machine_.ahead = 30s;
  EXPECT_EQ(known(), 90min + 30s);
  machine_.ahead = -20s;
  EXPECT_EQ(known(), 90min + 30s) << "it never goes back";
  machine_.passed += 10s;
  EXPECT_EQ(known(), 90min + 40s);
  EXPECT_EQ(clock_.take_news(), std::nullopt);
}

TEST_F(RetentionClockTest, AStepAheadCountsOnceItHasLasted) {
  machine_.ahead = 240h;
  EXPECT_EQ(known(), 0s);
  EXPECT_THAT(clock_.take_news(), Optional(HasSubstr("10d ahead")));
  EXPECT_EQ(clock_.take_news(), std::nullopt) << "said once";
  machine_.passed = 10min - 1ms;
  EXPECT_EQ(known(), 10min - 1ms);
  machine_.passed = 10min;
  EXPECT_EQ(known(), 240h + 10min);
  EXPECT_THAT(clock_.take_news(), Optional(HasSubstr("believed")));
}

TEST_F(RetentionClockTest, AStepThatIsTakenBackNeverHappened) {
  machine_.ahead = 240h;
  EXPECT_EQ(known(), 0s);
  machine_.passed = 9min;
  machine_.ahead = 0s;
  EXPECT_EQ(known(), 9min);
  EXPECT_THAT(clock_.take_news(), Optional(HasSubstr("back at the time")));
  machine_.passed = 30min;
  EXPECT_EQ(known(), 30min);
}

TEST_F(RetentionClockTest, AnotherStepBeginsItsOwnTenMinutes) {
  for (const base::Duration ahead : {240h, 480h, 240h}) {
    machine_.ahead = ahead;
    EXPECT_EQ(known(), machine_.passed);
    machine_.passed += 9min;
    EXPECT_EQ(known(), machine_.passed);
  }
}

TEST_F(RetentionClockTest, BehindAMachineOfLongAgoItGoesOn) {
  machine_.ahead = -8760h * 24;
  EXPECT_EQ(known(), 0s);
  EXPECT_THAT(clock_.take_news(), Optional(HasSubstr("behind")));
  machine_.passed = 20min;
  EXPECT_EQ(known(), 20min) << "never back, also when it is believed";
  machine_.passed = 30min;
  EXPECT_EQ(known(), 30min);
  // Somebody sets the clock right: nothing but those thirty minutes has passed.
  machine_.ahead = 0s;
  EXPECT_EQ(known(), 30min);
  machine_.passed = 45min;
  EXPECT_EQ(known(), 45min);
}

TEST_F(RetentionClockTest, AResumedOneWaitsToBelieveHowLongNobodyLooked) {
  clock_.resume(kStart - 8h);
  EXPECT_EQ(known(), -8h);
  EXPECT_EQ(clock_.take_news(), std::nullopt) << "a night's rest is no news";
  machine_.passed = 10min;
  EXPECT_EQ(known(), 10min);

  RetentionClock next(machine_);
  next.resume(kStart - 240h);
  EXPECT_EQ(next.now(), kStart - 240h);
  EXPECT_THAT(next.take_news(), Optional(HasSubstr("ahead")));
}

TEST_F(RetentionClockTest, AMachineThatStartsInThePastMakesNothingOldWhenItIsSetRight) {
  machine_.ahead = -8760h * 24;
  RetentionClock clock(machine_);
  clock.resume(kStart);
  EXPECT_EQ(clock.now(), kStart);
  machine_.passed = 1h;
  EXPECT_EQ(clock.now(), kStart + 1h);
  machine_.ahead = 24h;
  EXPECT_EQ(clock.now(), kStart + 1h);
  machine_.passed = 2h;
  EXPECT_EQ(clock.now(), kStart + 2h + 24h) << "a day has passed, and not 24 years";
}

TEST_F(RetentionClockTest, GoesOnFromAnEarlierProcessOnce) {
  // The disk that knows it could not be opened for half an hour.
  machine_.passed = 30min;
  clock_.resume(kStart - 48h);
  EXPECT_EQ(known(), 30min - 48h);
  EXPECT_THAT(clock_.take_news(), Optional(HasSubstr("2d ahead")));
  machine_.passed += 9min;
  clock_.resume(kStart - 48h);
  EXPECT_EQ(known(), 39min - 48h) << "another attempt to open it takes nothing back";
  EXPECT_EQ(clock_.take_news(), std::nullopt);
  machine_.passed += 1min;
  EXPECT_EQ(known(), 40min) << "the patience runs on";
}

}  // namespace
}  // namespace vigil::config
