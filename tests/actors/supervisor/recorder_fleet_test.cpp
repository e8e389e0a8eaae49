#include "actors/supervisor/recorder_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

class RecorderFleetTest : public ::testing::Test {
 protected:
  std::optional<RecorderFleet::Loss> end(RecorderFleet::RecorderId recorder, bool failed = false) {
    return recordings_.lost(recorder, failed, now_);
  }

  const base::Clock::TimePoint now_{1h};
  RecorderFleet recordings_{{.pre_roll = 5s, .post_roll = 5s, .memory = 1 << 20, .seed = 1}};
  std::shared_ptr<OwnCamera> gate_ = camera("gate");
  std::shared_ptr<Pulse> pulse_ = std::make_shared<Pulse>();
};

TEST_F(RecorderFleetTest, AHistoryLastsAsLongAsTheCamerasTime) {
  const RecorderFleet::Start first = recordings_.start(*gate_, pulse_);
  ASSERT_NE(first.history, nullptr);
  EXPECT_TRUE(first.anew);
  const RecorderFleet::Start again = recordings_.start(*gate_, pulse_);
  EXPECT_EQ(again.history, first.history);
  EXPECT_FALSE(again.anew);
  const RecorderFleet::Start other = recordings_.start(*gate_, std::make_shared<Pulse>());
  EXPECT_NE(other.history, first.history);
  EXPECT_TRUE(other.anew);
  EXPECT_EQ(other.outdated, std::nullopt) << "nobody else filled it";
  EXPECT_FALSE(pulse_->cancelled().stop_requested()) << "the camera's own reading is not its to end";
}

TEST_F(RecorderFleetTest, ARecorderGetsWhatItsCameraHas) {
  const RecorderFleet::Start start = recordings_.start(*gate_, pulse_);
  const RecorderOptions options = recordings_.recorder_options(gate_);
  EXPECT_EQ(options.camera, gate_);
  EXPECT_EQ(options.history, start.history);
  EXPECT_NE(options.backoff, nullptr);
  EXPECT_EQ(recordings_.recorder_options(gate_).backoff, options.backoff) << "the next attempt waits longer";
  EXPECT_EQ(recordings_.pulse("gate"), pulse_);
}

TEST_F(RecorderFleetTest, OfTheRecordersOfACameraTheLastOneCounts) {
  recordings_.start(*gate_, pulse_);
  recordings_.begun("gate", 1);
  EXPECT_TRUE(recordings_.is_current(1));
  EXPECT_EQ(end(1)->camera, "gate");
  EXPECT_FALSE(recordings_.is_current(1));
  EXPECT_FALSE(end(1).has_value());
  recordings_.begun("gate", 2);
  recordings_.begun("gate", 3);
  EXPECT_FALSE(end(2).has_value()) << "there is another one";
  EXPECT_TRUE(recordings_.is_current(3));
}

TEST_F(RecorderFleetTest, WhoFillsAHistoryOfBeforeIsStoppedAndHeardNoMore) {
  recordings_.start(*gate_, pulse_);
  recordings_.begun("gate", 1);
  const auto next = std::make_shared<Pulse>();
  EXPECT_THAT(recordings_.start(*gate_, next).outdated, Optional(1U));
  EXPECT_TRUE(pulse_->cancelled().stop_requested()) << "it waits for its source";
  EXPECT_FALSE(next->cancelled().stop_requested());
  EXPECT_FALSE(recordings_.is_current(1));
  EXPECT_FALSE(end(1).has_value());
}

TEST_F(RecorderFleetTest, ACameraThatIsGoneLeavesNothing) {
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
  EXPECT_FALSE(end(1).has_value());
  EXPECT_TRUE(recordings_.is_current(2));
}

TEST_F(RecorderFleetTest, StoppingStopsThoseThatRun) {
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

TEST_F(RecorderFleetTest, WhatWasSaidIsNoNews) {
  recordings_.start(*gate_, pulse_);
  const auto is_news = [this](bool recording) {
    return recordings_.said({"gate", recording, "refused"}).has_value();
  };
  EXPECT_EQ(recordings_.said({"gate", false, "refused"})->reason, "refused");
  EXPECT_FALSE(is_news(false));
  EXPECT_TRUE(is_news(true));
  EXPECT_FALSE(is_news(true));
  recordings_.start(*gate_, std::make_shared<Pulse>());
  EXPECT_TRUE(is_news(true)) << "of its time that begins";
}

TEST_F(RecorderFleetTest, TheCameraKeepsWhatItReadsItselfAndARecorderTheRest) {
  const RecorderFleet::Start same = recordings_.start(*gate_, pulse_);
  EXPECT_EQ(same.own, same.history);
  const auto yard = camera("yard");
  yard->inputs.push_back({{"rtsp://h/main", "rtsp://h/main"}, {config::Role::record}});
  for (int i = 0; i < 2; ++i) {
    const RecorderFleet::Start apart = recordings_.start(*yard, pulse_);
    EXPECT_EQ(apart.own, nullptr);
    EXPECT_NE(apart.history, nullptr);
  }
}

TEST_F(RecorderFleetTest, AnInputThatCannotBeReachedIsToldOnceAndTriedLaterAndLater) {
  gate_->stream.reconnect = {1s, 60s};
  recordings_.start(*gate_, pulse_);
  const auto first = recordings_.unreachable("gate", "refused", now_);
  EXPECT_GT(first.again, now_);
  EXPECT_LE(first.again, now_ + 1s);
  ASSERT_TRUE(first.news.has_value());
  EXPECT_EQ(first.news->reason, "refused");
  const auto second = recordings_.unreachable("gate", "refused", now_);
  EXPECT_GE(second.again, now_ + 1s);
  EXPECT_FALSE(second.news.has_value());
}

TEST_F(RecorderFleetTest, WhatBecomesOfAnInputDependsOnHowItsRecorderEnded) {
  using Next = SourceEnd::Next;
  const SourceRest rest{"gate", config::Role::record, now_ + 3s, false};
  recordings_.start(*gate_, pulse_);
  recordings_.begun("gate", 1);
  recordings_.rests(1, rest);
  EXPECT_EQ(end(1)->source, (SourceEnd{Next::rest, now_ + 3s}));
  recordings_.begun("gate", 2);
  recordings_.rests(1, rest);
  EXPECT_EQ(end(2)->source, SourceEnd{}) << "it was asked to end; another's rest is none of its own";
  recordings_.begun("gate", 3);
  recordings_.rests(3, {"gate", config::Role::record, now_ + 1s, true});
  EXPECT_EQ(end(3)->source.next, Next::no_descriptor);
  recordings_.begun("gate", 4);
  EXPECT_EQ(end(4, /*failed=*/true)->source, (SourceEnd{Next::rest, now_ + RecorderFleet::kRest}));
  // What one of before said does not count for the one of now.
  recordings_.begun("gate", 5);
  recordings_.rests(5, rest);
  recordings_.start(*gate_, std::make_shared<Pulse>());
  recordings_.begun("gate", 6);
  EXPECT_FALSE(end(5).has_value());
  EXPECT_EQ(end(6)->source, SourceEnd{});
}

}  // namespace
}  // namespace vigil::actors
