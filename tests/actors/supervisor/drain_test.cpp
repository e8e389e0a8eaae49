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
  EXPECT_FALSE(drain_.stage_ended("cpu"));
  EXPECT_FALSE(drain_.outcome({}).has_value()) << "alerts may still be telling something";
  EXPECT_FALSE(drain_.stage_ended("alerts"));
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
  drain_.stage_ended("cpu");
  drain_.stage_ended("alerts");
  EXPECT_FALSE(drain_.outcome({}).has_value());
  drain_.camera_ended("gate");
  ASSERT_TRUE(drain_.outcome({"camera gate: refused"}).has_value());
  EXPECT_FALSE(drain_.outcome({})->complete) << "what was captured has not come out";
  EXPECT_THAT(drain_.outcome({})->failures, ElementsAre("camera gate: refused"));
}

TEST_F(DrainTest, AStageThatEndsUnaskedIsAFailure) {
  EXPECT_TRUE(drain_.stage_ended("cpu"));
  EXPECT_FALSE(drain_.stage_ended("cpu")) << "nobody knows it any more";
  drain_.finish();
  EXPECT_FALSE(drain_.stage_ended("alerts"));
}

TEST_F(DrainTest, WhatIsGivenUpIsNotComplete) {
  drain_.camera_ended("gate");
  drain_.completed();
  drain_.finish();
  drain_.give_up();
  ASSERT_TRUE(drain_.outcome({}).has_value());
  EXPECT_FALSE(drain_.outcome({})->complete) << "alerts did not end in time";
  drain_.stage_ended("alerts");
  drain_.stage_ended("cpu");
  EXPECT_FALSE(drain_.outcome({})->complete) << "told once";
}

TEST_F(DrainTest, WhoGivesUpAfterwardsChangesNothing) {
  drain_.camera_ended("gate");
  drain_.completed();
  drain_.finish();
  drain_.stage_ended("alerts");
  drain_.stage_ended("cpu");
  drain_.give_up();
  EXPECT_TRUE(drain_.outcome({})->complete);
}

}  // namespace
}  // namespace vigil::actors
