#include "actors/supervisor/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DrainTest : public ::testing::Test {
 protected:
  DrainTest() {
    drain_.stage_runs("alerts");
    drain_.stage_runs("cpu");
    drain_.camera_runs("gate");
  }

  Drain drain_;
};

TEST_F(DrainTest, IsOverWhenNobodyIsThereAnyMore) {
  EXPECT_TRUE(drain_.stop());
  EXPECT_FALSE(drain_.stop()) << "once";
  EXPECT_TRUE(drain_.stopping());
  EXPECT_FALSE(drain_.finishing());
  drain_.camera_ended("gate");
  drain_.completed();
  EXPECT_TRUE(drain_.finish());
  EXPECT_FALSE(drain_.finish()) << "once";
  EXPECT_FALSE(drain_.stage_ended("cpu", true));
  EXPECT_FALSE(drain_.outcome({}).has_value()) << "alerts may still be telling something";
  EXPECT_FALSE(drain_.stage_ended("alerts", true));
  ASSERT_TRUE(drain_.outcome({}).has_value());
  EXPECT_TRUE(drain_.outcome({})->complete);
  EXPECT_THAT(drain_.outcome({"late"})->failures, IsEmpty()) << "as it was when the run ended";
}

TEST_F(DrainTest, AFileThatEndsOfItselfIsNoStop) {
  drain_.camera_ended("gate");
  drain_.completed();
  drain_.finish();
  EXPECT_FALSE(drain_.stopping());
}

TEST_F(DrainTest, WhoseActorStillRunsIsWaitedFor) {
  drain_.finish();
  drain_.stage_ended("cpu", true);
  drain_.stage_ended("alerts", true);
  EXPECT_FALSE(drain_.outcome({}).has_value());
  drain_.camera_ended("gate");
  ASSERT_TRUE(drain_.outcome({"camera gate: refused"}).has_value());
  EXPECT_FALSE(drain_.outcome({})->complete) << "what was captured has not come out";
  EXPECT_THAT(drain_.outcome({})->failures, ElementsAre("camera gate: refused"));
}

TEST_F(DrainTest, AStageThatEndsUnaskedIsAFailure) {
  EXPECT_TRUE(drain_.stage_ended("cpu", true));
  EXPECT_FALSE(drain_.stage_ended("cpu", true)) << "nobody knows it any more";
  drain_.finish();
  EXPECT_FALSE(drain_.stage_ended("alerts", true));
}

TEST_F(DrainTest, WhatIsGivenUpIsNotComplete) {
  drain_.camera_ended("gate");
  drain_.completed();
  drain_.finish();
  drain_.give_up();
  EXPECT_FALSE(drain_.outcome({}).has_value()) << "alerts writes down what was found";
  drain_.stage_ended("alerts", true);
  ASSERT_TRUE(drain_.outcome({}).has_value()) << "nobody else is waited for";
  EXPECT_FALSE(drain_.outcome({})->complete) << "cpu did not end in time";
  EXPECT_TRUE(drain_.outcome({})->alerts_kept);
  drain_.stage_ended("cpu", true);
  EXPECT_FALSE(drain_.outcome({})->complete) << "told once";
}

TEST_F(DrainTest, AlertsThatDoNotEndAreGivenUpTheSecondTime) {
  drain_.finish();
  drain_.give_up();
  drain_.give_up();
  ASSERT_TRUE(drain_.outcome({}).has_value());
  EXPECT_FALSE(drain_.outcome({})->complete);
  EXPECT_FALSE(drain_.outcome({})->alerts_kept);
}

TEST_F(DrainTest, AlertsAreKeptOnlyIfItEndedWellWhenItWasAskedTo) {
  drain_.stage_ended("cpu", true);
  drain_.camera_ended("gate");
  Drain early = drain_;
  EXPECT_TRUE(early.stage_ended("alerts", true));
  early.finish();
  EXPECT_FALSE(early.outcome({})->alerts_kept) << "something may have come after it";
  Drain badly = drain_;
  badly.finish();
  badly.stage_ended("alerts", false);
  EXPECT_FALSE(badly.outcome({})->alerts_kept) << "it says that events are lost";
}

TEST_F(DrainTest, WhoGivesUpAfterwardsChangesNothing) {
  drain_.camera_ended("gate");
  drain_.completed();
  drain_.finish();
  drain_.stage_ended("alerts", true);
  drain_.stage_ended("cpu", true);
  drain_.give_up();
  EXPECT_TRUE(drain_.outcome({})->complete);
}

}  // namespace
}  // namespace vigil::actors
