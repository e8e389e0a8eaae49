// When a rule's answers begin, continue and end an episode.
#include "actors/alerts/alert_policy.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"
#include "tests/actors/times.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AlertPolicyTest : public ::testing::Test {
 protected:
  /// Windows end every 2 s; a score for each. Returns what was emitted, as "phase@seconds#episode.ordinal".
  std::vector<std::string> feed(const std::vector<double>& scores) {
    std::vector<std::string> result;
    for (const double score : scores) {
      seconds_ += 2;
      const auto emission = policy_->observe(
          {score, seconds_, kStart + std::chrono::seconds(static_cast<int>(seconds_)) + jumped_, snoozed_});
      if (emission) {
        last_ = *emission;
        if (emission->phase == Phase::begin) ++episodes_;
        result.push_back(std::string(name_of(emission->phase)) + '@' +
                         std::to_string(static_cast<int>(seconds_)) + '#' + std::to_string(episodes_ - 1) +
                         '.' + std::to_string(emission->ordinal));
      }
    }
    return result;
  }

  void configure(config::Confirmation confirm, base::Duration cooldown, double threshold = 0.5,
                 int max_per_hour = 10'000) {
    config::RuleSettings rule;
    rule.confirm = confirm;
    rule.cooldown = cooldown;
    rule.threshold = threshold;
    rule.max_per_hour = max_per_hour;
    policy_.emplace(rule, config::WindowSettings{4s, 2s});
    seconds_ = 0;
    episodes_ = 0;
  }

  std::optional<AlertPolicy> policy_;
  double seconds_ = 0;
  int episodes_ = 0;
  bool snoozed_ = false;
  base::Duration jumped_{0};
  Emission last_;
};

TEST_F(AlertPolicyTest, TwoInARowBeginAnEpisodeAndTwoWithoutEndIt) {
  configure({2, 2}, 60s);
  EXPECT_THAT(feed({0.9, 0.1, 0.9, 0.1}), IsEmpty()) << "one window is not enough";
  EXPECT_THAT(feed({0.6, 0.8}), ElementsAre("new@12#0.0"));
  EXPECT_EQ(last_.confirmations, 2);
  EXPECT_DOUBLE_EQ(last_.score, 0.8);
  EXPECT_EQ(last_.start, kStart + 10s);
  EXPECT_EQ(last_.end, std::nullopt);
  EXPECT_THAT(feed({0.9, 0.1, 0.7, 0.2}), IsEmpty()) << "one window without does not end it";
  EXPECT_THAT(feed({0.2}), ElementsAre("end@22#0.1"));
  EXPECT_DOUBLE_EQ(last_.score, 0.9) << "the highest of the episode";
  EXPECT_EQ(last_.confirmations, 4);
  EXPECT_EQ(last_.start, kStart + 10s);
  EXPECT_EQ(last_.end, kStart + 18s) << "the last window that counted";
}

TEST_F(AlertPolicyTest, TheThresholdItselfCounts) {
  configure({1, 1}, 0s, 0.7);
  EXPECT_THAT(feed({0.69999}), IsEmpty());
  EXPECT_THAT(feed({0.7}), ElementsAre("new@4#0.0"));
}

TEST_F(AlertPolicyTest, NOfMWindowsInAnyOrder) {
  configure({2, 3}, 60s);
  EXPECT_THAT(feed({0.9, 0.1, 0.1, 0.9, 0.1}), IsEmpty());
  EXPECT_THAT(feed({0.9}), ElementsAre("new@12#0.0"));
  EXPECT_THAT(feed({0.1, 0.1}), IsEmpty());
  EXPECT_THAT(feed({0.1}), ElementsAre("end@18#0.1"));
}

TEST_F(AlertPolicyTest, AnUpdateForEachCooldownThatItGoesOn) {
  configure({2, 2}, 6s);
  EXPECT_THAT(feed({1, 1, 1, 1, 1, 1, 1, 1}), ElementsAre("new@4#0.0", "update@10#0.1", "update@16#0.2"));
}

TEST_F(AlertPolicyTest, TheCooldownStartsAtEmissionAndHoldsBackTheNextEpisode) {
  configure({1, 1}, 10s);
  EXPECT_THAT(feed({1, 0}), ElementsAre("new@2#0.0", "end@4#0.1"));
  EXPECT_THAT(feed({1, 0, 1}), IsEmpty()) << "at 6 s and 10 s it cools down";
  EXPECT_THAT(feed({1}), ElementsAre("new@12#1.0")) << "what was held back used nothing up";
  EXPECT_THAT(feed({0, 1, 0, 0}), ElementsAre("end@14#1.1"));
}

TEST_F(AlertPolicyTest, LostWindowsDoNotBreakARowButALongGapDoes) {
  configure({2, 2}, 60s);
  feed({0.9});
  seconds_ += 8;  // 10 s after the first: 2 * 2 windows of 2 s, and the length of one, 4 s, bridge 12 s
  EXPECT_THAT(feed({0.9}), ElementsAre("new@12#0.0"));
  configure({2, 2}, 60s);
  feed({0.9});
  seconds_ += 12;
  EXPECT_THAT(feed({0.9}), IsEmpty());
}

TEST_F(AlertPolicyTest, ClosingEndsAnEpisodeOnce) {
  configure({1, 1}, 0s);
  EXPECT_EQ(policy_->close(EndReason::camera_ended), std::nullopt);
  feed({1});
  const auto last = policy_->close(EndReason::camera_ended);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->phase, Phase::end);
  EXPECT_EQ(last->reason, EndReason::camera_ended);
  EXPECT_EQ(last->end, kStart + 2s);
  EXPECT_EQ(policy_->close(EndReason::camera_ended), std::nullopt);
}

TEST_F(AlertPolicyTest, TheRateCapCountsWhatWasToldWithinAnHour) {
  configure({1, 1}, 0s, 0.5, /*max_per_hour=*/3);
  EXPECT_THAT(feed({1, 1, 0, 1, 1, 0}),
              ElementsAre("new@2#0.0", "update@4#0.1", "end@6#0.2", "new@8#1.0", "end@12#1.1"))
      << "an end is always told, and is not counted";
  EXPECT_THAT(feed({1, 0, 1}), IsEmpty());
  EXPECT_EQ(policy_->held(), Held::rate_cap);
  seconds_ = 3600 - 2;
  EXPECT_THAT(feed({1}), IsEmpty()) << "an hour after the first is at 3602 s";
  EXPECT_THAT(feed({1, 1, 1, 1}), ElementsAre("new@3602#2.0", "update@3604#2.1", "update@3608#2.2"))
      << "each makes room for one an hour later; what was held back took none";
  EXPECT_EQ(policy_->held(), std::nullopt);
}

TEST_F(AlertPolicyTest, ACooldownLongerThanAnHourHolds) {
  configure({1, 1}, 3h, 0.5, /*max_per_hour=*/1);
  EXPECT_THAT(feed({1, 0}), ElementsAre("new@2#0.0", "end@4#0.1"));
  seconds_ = 2 * 3600;
  EXPECT_THAT(feed({1, 0}), IsEmpty());
  seconds_ = 3 * 3600;
  EXPECT_THAT(feed({1}), ElementsAre("new@10802#1.0"));
}

TEST_F(AlertPolicyTest, ASnoozeHoldsBackUntilItIsOverAndUsesNothingUp) {
  configure({2, 2}, 6s);
  snoozed_ = true;
  EXPECT_THAT(feed({1, 1, 1}), IsEmpty());
  EXPECT_EQ(policy_->held(), Held::snoozed);
  EXPECT_FALSE(policy_->active());
  snoozed_ = false;
  EXPECT_THAT(feed({1}), ElementsAre("new@8#0.0")) << "it still holds, and no cooldown runs";
  snoozed_ = true;
  EXPECT_THAT(feed({1, 1, 1, 1, 0}), IsEmpty()) << "no update";
  EXPECT_THAT(feed({0}), ElementsAre("end@20#0.1")) << "what was told is told to its end";
  EXPECT_THAT(feed({1, 0, 1}), IsEmpty());
  EXPECT_EQ(policy_->held(), std::nullopt) << "nothing is confirmed";
}

TEST_F(AlertPolicyTest, AJumpOfTheWallClockChangesNoCooldownAndNoRate) {
  for (const base::Duration jump : {base::Duration(24h), base::Duration(-24h)}) {
    configure({1, 1}, 10s, 0.5, /*max_per_hour=*/2);
    jumped_ = base::Duration(0);
    EXPECT_THAT(feed({1, 0}), ElementsAre("new@2#0.0", "end@4#0.1"));
    jumped_ = jump;
    EXPECT_THAT(feed({1, 0, 1}), IsEmpty()) << "at 6 s and 10 s it cools down";
    EXPECT_THAT(feed({1, 0}), ElementsAre("new@12#1.0", "end@14#1.1"));
    seconds_ = 30;
    EXPECT_THAT(feed({1}), IsEmpty());
    EXPECT_EQ(policy_->held(), Held::rate_cap);
  }
}

TEST_F(AlertPolicyTest, AnEpisodeDoesNotEndBeforeItsStart) {
  configure({1, 1}, 0s);
  feed({1});
  jumped_ = -24h;
  EXPECT_THAT(feed({1, 0}), ElementsAre("update@4#0.1", "end@6#0.2"));
  EXPECT_EQ(last_.start, kStart + 2s);
  EXPECT_EQ(last_.end, last_.start);
}

/// What another policy told last.
Emission told_before() {
  Emission told;
  told.ordinal = 3;
  told.score = 0.8;
  told.confirmations = 7;
  told.start = kStart - 60s;
  return told;
}

TEST_F(AlertPolicyTest, AResumedEpisodeGoesOnWhereItWas) {
  configure({2, 3}, 20s);
  policy_->resume(told_before(), kStart - 5s);
  EXPECT_TRUE(policy_->active());
  // The last one is 20 s after what was told 5 s before the beginning.
  EXPECT_THAT(feed({0.9, 0.6, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9}), ElementsAre("update@16#-1.4"));
  EXPECT_EQ(last_.confirmations, 14);
  EXPECT_DOUBLE_EQ(last_.score, 0.9);
  EXPECT_EQ(last_.start, kStart - 60s);
  EXPECT_FALSE(last_.end);
  EXPECT_THAT(feed({0.1, 0.1, 0.1}), ElementsAre("end@22#-1.5"));
  EXPECT_EQ(last_.end, kStart + 16s);
}

TEST_F(AlertPolicyTest, AResumedEpisodeIsNotOverBeforeARowOfWindowsSaysSo) {
  configure({1, 3}, 0s);
  policy_->resume(told_before(), kStart - 5s);
  EXPECT_THAT(feed({0.1, 0.1, 0.1}), ElementsAre("end@6#-1.4")) << "the ones before are not known";
  EXPECT_EQ(last_.end, kStart - 5s) << "when it was told last";
  EXPECT_EQ(last_.confirmations, 7);
  policy_->resume(told_before(), kStart - 5s);
  EXPECT_EQ(policy_->close(EndReason::camera_ended)->ordinal, 4U);
  EXPECT_THAT(feed({0.9, 0.1}), ElementsAre("new@8#0.0")) << "nothing of it is left";
}

TEST_F(AlertPolicyTest, AResumedEpisodeIsNotToldOfWindowsThatItWasToldOf) {
  configure({1, 1}, 0s);
  policy_->resume(told_before(), kStart + 6s - 400us);
  // Windows of 4 s: those that end 2 s before and at that time come once more.
  seconds_ = 2;
  EXPECT_THAT(feed({0.9, 0.9, 0.9}), ElementsAre("update@8#-1.4"));
  EXPECT_EQ(last_.confirmations, 8) << "they have counted already";
  EXPECT_THAT(feed({0.1}), ElementsAre("end@10#-1.5"));
  policy_->resume(told_before(), kStart + 16s);
  EXPECT_THAT(feed({0.9}), ElementsAre("update@12#-1.4"))
      << "a clock that was set back by a window or more silences nothing";
}

TEST_F(AlertPolicyTest, AResumedEpisodeThatWasToldInTheFutureWaitsForItsCooldownOnce) {
  configure({1, 2}, 20s);
  policy_->resume(told_before(), kStart + 1h);
  EXPECT_THAT(feed(std::vector<double>(11, 0.9)), ElementsAre("update@22#-1.4"));
}

/// As of a camera whose plan was lost: its time is that of a new one, and its rules are those from before.
class AnewTest : public AlertPolicyTest {
 protected:
  /// `gap`: on the wall, beyond the next window's.
  void begin_anew(base::Duration gap) {
    jumped_ += std::chrono::seconds(static_cast<int>(seconds_)) + gap;
    seconds_ = 0;
  }
};

TEST_F(AnewTest, ACooldownGoesOnByTheWallClock) {
  configure({1, 1}, 60s);
  seconds_ = 86'400;
  ASSERT_THAT(feed({0.9, 0.1}), ElementsAre("new@86402#0.0", "end@86404#0.1"));
  begin_anew(20s);
  // 24 s after it was told.
  EXPECT_THAT(feed({0.9}), IsEmpty());
  EXPECT_EQ(policy_->held(), Held::cooldown);
  EXPECT_THAT(feed(std::vector<double>(17, 0.1)), IsEmpty());
  EXPECT_THAT(feed({0.9}), ElementsAre("new@38#1.0")) << "60 s after it was told";
}

TEST_F(AnewTest, AnEpisodeGoesOnAndIsToldAfterItsCooldown) {
  configure({1, 1}, 60s);
  seconds_ = 86'400;
  ASSERT_THAT(feed({0.9}), ElementsAre("new@86402#0.0"));
  begin_anew(50s);
  EXPECT_THAT(feed(std::vector<double>(5, 0.9)), ElementsAre("update@10#0.1"));
  EXPECT_THAT(feed({0.1}), ElementsAre("end@12#0.2"));
}

TEST_F(AnewTest, WhatWasToldCountsForTheRateCap) {
  configure({1, 1}, 0s, 0.5, 2);
  seconds_ = 86'400;
  ASSERT_THAT(feed({0.9, 0.1, 0.9, 0.1}),
              ElementsAre("new@86402#0.0", "end@86404#0.1", "new@86406#1.0", "end@86408#1.1"));
  begin_anew(0s);
  EXPECT_THAT(feed({0.9}), IsEmpty());
  EXPECT_EQ(policy_->held(), Held::rate_cap);
  EXPECT_THAT(feed(std::vector<double>(1795, 0.1)), IsEmpty());
  EXPECT_THAT(feed({0.9}), ElementsAre("new@3594#2.0")) << "an hour after the first";
}

TEST_F(AnewTest, WindowsBeforeALongGapConfirmNothing) {
  configure({2, 2}, 0s);
  seconds_ = 86'400;
  ASSERT_THAT(feed({0.9}), IsEmpty());
  begin_anew(0s);
  EXPECT_THAT(feed({0.9}), ElementsAre("new@2#0.0"));
  configure({2, 2}, 0s);
  seconds_ = 86'400;
  ASSERT_THAT(feed({0.9}), IsEmpty());
  begin_anew(60s);
  EXPECT_THAT(feed({0.9}), IsEmpty());
}

TEST_F(AnewTest, AWallClockThatWasSetBackMeanwhileSilencesForACooldownAtMost) {
  configure({1, 1}, 60s);
  seconds_ = 86'400;
  ASSERT_THAT(feed({0.9, 0.1}), ElementsAre("new@86402#0.0", "end@86404#0.1"));
  begin_anew(-3600s);
  EXPECT_THAT(feed(std::vector<double>(30, 0.1)), IsEmpty());
  EXPECT_THAT(feed({0.9}), ElementsAre("new@62#1.0"));
}

TEST_F(AnewTest, AWindowThatComesOnceMoreIsNoNewBeginning) {
  configure({1, 1}, 60s);
  ASSERT_THAT(feed({0.9, 0.1, 0.1}), ElementsAre("new@2#0.0", "end@4#0.1"));
  seconds_ -= 4;
  EXPECT_THAT(feed(std::vector<double>(28, 0.1)), IsEmpty());
  EXPECT_THAT(feed({0.9, 0.9}), ElementsAre("new@62#1.0")) << "60 s after it was told";
}

}  // namespace
}  // namespace vigil::actors
