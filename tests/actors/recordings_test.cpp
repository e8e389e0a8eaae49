#include "actors/supervisor/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

class RecordingsTest : public ::testing::Test {
 protected:
  Recordings recordings_{{.pre_roll = 5s, .post_roll = 5s, .memory = 1 << 20, .seed = 1}};
  std::shared_ptr<config::CameraSettings> gate_ = camera("gate");
  std::shared_ptr<Pulse> pulse_ = std::make_shared<Pulse>();
};

TEST_F(RecordingsTest, AHistoryLastsAsLongAsTheCamerasTime) {
  const Recordings::Start first = recordings_.start(*gate_, pulse_);
  ASSERT_NE(first.history, nullptr);
  EXPECT_TRUE(first.anew);
  const Recordings::Start again = recordings_.start(*gate_, pulse_);
  EXPECT_EQ(again.history, first.history);
  EXPECT_FALSE(again.anew);
  const Recordings::Start other = recordings_.start(*gate_, std::make_shared<Pulse>());
  EXPECT_NE(other.history, first.history);
  EXPECT_TRUE(other.anew);
  EXPECT_EQ(other.outdated, std::nullopt) << "nobody else filled it";
  EXPECT_FALSE(pulse_->cancelled().stop_requested()) << "the camera's own reading is not its to end";
}

TEST_F(RecordingsTest, ARecorderGetsWhatItsCameraHas) {
  const Recordings::Start start = recordings_.start(*gate_, pulse_);
  const RecorderOptions options = recordings_.recorder_options(gate_);
  EXPECT_EQ(options.camera, gate_);
  EXPECT_EQ(options.history, start.history);
  EXPECT_EQ(options.backoff.get(), &recordings_.backoff("gate"));
  EXPECT_EQ(recordings_.pulse("gate"), pulse_);
}

TEST_F(RecordingsTest, OfTheRecordersOfACameraTheLastOneCounts) {
  recordings_.start(*gate_, pulse_);
  recordings_.begun("gate", 1);
  EXPECT_TRUE(recordings_.is_current(1));
  EXPECT_THAT(recordings_.ended(1), Optional(std::string("gate")));
  EXPECT_FALSE(recordings_.is_current(1));
  EXPECT_EQ(recordings_.ended(1), std::nullopt);
  recordings_.begun("gate", 2);
  recordings_.begun("gate", 3);
  EXPECT_EQ(recordings_.ended(2), std::nullopt) << "there is another one";
  EXPECT_TRUE(recordings_.is_current(3));
}

TEST_F(RecordingsTest, WhoFillsAHistoryOfBeforeIsStoppedAndHeardNoMore) {
  recordings_.start(*gate_, pulse_);
  recordings_.begun("gate", 1);
  const auto next = std::make_shared<Pulse>();
  EXPECT_THAT(recordings_.start(*gate_, next).outdated, Optional(1U));
  EXPECT_TRUE(pulse_->cancelled().stop_requested()) << "it waits for its source";
  EXPECT_FALSE(next->cancelled().stop_requested());
  EXPECT_FALSE(recordings_.is_current(1));
  EXPECT_EQ(recordings_.ended(1), std::nullopt);
}

TEST_F(RecordingsTest, ACameraThatIsGoneLeavesNothing) {
  EXPECT_EQ(recordings_.remove("gate"), std::nullopt);
  recordings_.start(*gate_, pulse_);
  EXPECT_EQ(recordings_.remove("gate"), std::nullopt);
  recordings_.start(*gate_, pulse_);
  recordings_.begun("gate", 1);
  EXPECT_THAT(recordings_.remove("gate"), Optional(1U));
  EXPECT_TRUE(pulse_->cancelled().stop_requested());
  EXPECT_FALSE(recordings_.is_current(1));
  recordings_.alter(*gate_);
  // One of the same name comes before the recorder has ended.
  EXPECT_TRUE(recordings_.start(*gate_, std::make_shared<Pulse>()).anew);
  recordings_.begun("gate", 2);
  EXPECT_EQ(recordings_.ended(1), std::nullopt);
  EXPECT_TRUE(recordings_.is_current(2));
}

TEST_F(RecordingsTest, StoppingStopsThoseThatRun) {
  const auto yard = camera("yard");
  const auto yard_pulse = std::make_shared<Pulse>();
  recordings_.start(*gate_, pulse_);
  recordings_.start(*yard, yard_pulse);
  EXPECT_THAT(recordings_.stop(), IsEmpty());
  EXPECT_FALSE(pulse_->cancelled().stop_requested());
  recordings_.begun("gate", 1);
  EXPECT_THAT(recordings_.stop(), UnorderedElementsAre(1U));
  EXPECT_TRUE(pulse_->cancelled().stop_requested());
  EXPECT_FALSE(yard_pulse->cancelled().stop_requested());
  EXPECT_TRUE(recordings_.is_current(1)) << "what it says until it ends is heard";
}

TEST_F(RecordingsTest, WhatWasSaidIsNoNews) {
  recordings_.start(*gate_, pulse_);
  EXPECT_TRUE(recordings_.is_news("gate", false));
  EXPECT_FALSE(recordings_.is_news("gate", false));
  EXPECT_TRUE(recordings_.is_news("gate", true));
  EXPECT_FALSE(recordings_.is_news("gate", true));
  recordings_.start(*gate_, std::make_shared<Pulse>());
  EXPECT_TRUE(recordings_.is_news("gate", true)) << "of its time that begins";
}

}  // namespace
}  // namespace vigil::actors
