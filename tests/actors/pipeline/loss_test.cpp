// What was found and could not be kept: the run says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/alerts/fallback_outbox.h"
#include "tests/actors/pipeline.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<int> kSomebodyPassing = {10, 10, 10, 10, 90, 90, 90, 90, 90, 90,
                                           90, 90, 10, 10, 10, 10, 10, 10, 10, 10};

class LossTest : public PipelineTest {
 protected:
  std::unique_ptr<Outbox> kept_ = make_memory_outbox();
};

TEST_F(LossTest, WhatIsLostAtTheEndIsAFailureOfTheRun) {
  auto outbox = std::make_unique<WatchedOutbox>(*kept_);
  outbox->fails = true;
  outbox_ = std::move(outbox);
  sources_.add("/clips/gate.mp4", frames(kSomebodyPassing));
  start({camera()});
  pass(15s);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_THAT(outcome()->failures, ElementsAre(HasSubstr("alerts: 5 events are lost: outbox: broken")));
}

TEST_F(LossTest, SoIsWhatWasKeptInMemoryAlone) {
  config::RetentionClock ages(clock_);
  outbox_ = make_fallback_outbox(
      {.open = []() -> std::unique_ptr<Outbox> { throw OutboxError("outbox /disk: read-only"); }}, ages,
      clock_, metrics_, logger_);
  sources_.add("/clips/gate.mp4", frames(kSomebodyPassing));
  start({camera()});
  pass(15s);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_THAT(outcome()->failures, ElementsAre(HasSubstr("events are lost: outbox /disk: read-only")));
  EXPECT_FALSE(outcome()->alerts_kept);
  outbox_ = make_memory_outbox();
}

}  // namespace
}  // namespace vigil::actors
