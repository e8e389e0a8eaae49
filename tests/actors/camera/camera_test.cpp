// How frames become patches, in which time and with what credit.
#include "actors/camera/camera.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/camera/cameras.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST_F(CameraTest, FoldsFramesIntoPatchesAndFinishesWithTheFile) {
  sources_.add(url_, frames({1, 2, 3, 4, 5}));
  Camera gate = make(camera());
  gate.grant(10);
  EXPECT_EQ(run(gate).next, Next::finished);
  ASSERT_EQ(patches_.size(), 3U);
  EXPECT_THAT(times(), ElementsAre(0, 1, 2));
  EXPECT_EQ(patches_[0]->frames.size(), 2U);
  EXPECT_EQ(patches_[2]->frames.size(), 1U) << "what was begun goes out at the end";
  EXPECT_EQ(patches_[1]->duration, 1.0);
  EXPECT_EQ(patches_[1]->sequence, 1U);
  EXPECT_EQ(patches_[0]->watch, watched(*settings_)->ref());
  EXPECT_EQ(recorder_.frames, 5);
  EXPECT_THAT(recorder_.states, ElementsAre("connecting: /clips/gate.mp4", "up", "down: end of file"));
  EXPECT_EQ(gate.failure(), std::nullopt);
}

TEST_F(CameraTest, PlayedFastItWaitsForCreditAndDropsNothing) {
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6}));
  Camera gate = make(camera());
  EXPECT_EQ(run(gate).next, Next::credit);
  gate.grant(1);
  EXPECT_EQ(run(gate).next, Next::credit);
  EXPECT_EQ(patches_.size(), 1U);
  EXPECT_LE(recorder_.frames, 3) << "it does not read ahead of its credit";
  gate.grant(5);
  EXPECT_EQ(run(gate).next, Next::finished);
  EXPECT_THAT(times(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(recorder_.dropped.empty());
}

TEST_F(CameraTest, WhatIsAcknowledgedGivesItsCreditBackUnlessItWasLost) {
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6, 7, 8}));
  Camera gate = make(camera());
  gate.grant(2);
  EXPECT_EQ(run(gate).next, Next::credit);
  ASSERT_EQ(patches_.size(), 2U);
  EXPECT_EQ(gate.sent().under_way(), 2U);
  gate.acknowledge(ack_of(*patches_[0], PatchOutcome::lost, "device_lost"));
  EXPECT_EQ(run(gate).next, Next::credit);
  EXPECT_EQ(patches_.size(), 2U) << "until a device has room";
  PatchAck before = ack_of(*patches_[1], PatchOutcome::encoded);
  before.generation = 9;
  gate.acknowledge(before);
  EXPECT_EQ(gate.sent().under_way(), 1U) << "another incarnation's";
  gate.acknowledge(ack_of(*patches_[1], PatchOutcome::encoded));
  EXPECT_EQ(run(gate).next, Next::credit);
  ASSERT_EQ(patches_.size(), 3U);
  gate.acknowledge(ack_of(*patches_[2], PatchOutcome::dropped, "encode_failed"));
  run(gate);
  EXPECT_EQ(patches_.size(), 4U);
  EXPECT_EQ(gate.sent().sent, 4U);
  EXPECT_EQ(gate.sent().encoded, 1U);
  EXPECT_EQ(gate.sent().dropped, 1U);
  EXPECT_EQ(gate.sent().lost, 1U);
}

TEST_F(CameraTest, WithoutCreditItDropsWholeStridesAndCountsThem) {
  // 2 s at 2 frames a second and 2 frames a patch: 2 patches a stride.
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(3);
  play(gate, 3900ms);
  EXPECT_THAT(times(), ElementsAre(0, 1)) << "one credit does not make a stride";
  EXPECT_EQ(recorder_.dropped["no_credit"], 4U);
  gate.grant(1);
  play(gate, 10s);
  EXPECT_THAT(times(), ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(recorder_.dropped["no_credit"], 4U);
}

TEST_F(CameraTest, AChangeOfSizeBeginsAnotherPatch) {
  std::deque<Event> script = frames({1, 2, 3, 4, 5});
  script[3].size = script[4].size = {8, 4};
  sources_.add(url_, script);
  Camera gate = make(camera());
  gate.grant(2);
  EXPECT_EQ(run(gate).next, Next::credit);
  gate.grant(2);
  run(gate);
  EXPECT_THAT(times(), ElementsAre(0, 1, 1.5));
  for (const FramePatchPtr& patch : patches_) {
    for (const auto& frame : patch->frames) EXPECT_EQ(frame.image->size, patch->frames[0].image->size);
  }
  EXPECT_EQ(recorder_.frames, 5);
}

TEST_F(CameraTest, StoppedItDeliversWhatItBegan) {
  sources_.add(url_, frames({1, 2, 3, 4, 5}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(10);
  play(gate, 1s);
  EXPECT_THAT(times(), ElementsAre(0));
  gate.stop();
  EXPECT_EQ(run(gate).next, Next::finished);
  EXPECT_THAT(times(), ElementsAre(0, 1));
  EXPECT_EQ(recorder_.states.back(), "down: stopped");
}

TEST_F(CameraTest, PlayedFastItsWallTimeFollowsTheStream) {
  sources_.add(url_, frames({1, 2, 3, 4}));
  Camera gate = make(camera());
  gate.grant(10);
  run(gate);
  ASSERT_EQ(patches_.size(), 2U);
  EXPECT_EQ(patches_[1]->captured.wall - patches_[0]->captured.wall, 1s);
}

TEST_F(CameraTest, PacedByItsOwnTimestamps) {
  sources_.add(url_, frames({1, 2, 3, 4}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(10);
  const auto start = clock_.now();
  CameraStep step = run(gate);
  ASSERT_EQ(step.next, Next::wait) << "the frame at 0.5 s is not due yet";
  EXPECT_EQ(step.until - start, 500ms);
  EXPECT_EQ(run(gate).next, Next::wait) << "waking up early changes nothing";
  EXPECT_TRUE(patches_.empty());
  clock_.advance(500ms);
  step = run(gate);
  EXPECT_EQ(step.until - start, 1000ms);
  EXPECT_EQ(patches_.size(), 1U);
  EXPECT_EQ(patches_[0]->captured.steady - start, 500ms);
  clock_.advance(1200ms);
  run(gate);
  EXPECT_EQ(patches_[1]->captured.steady - start, 1500ms)
      << "when its last frame was due, not when it was heard";
}

TEST_F(CameraTest, AfterADelayAPacedFileCatchesUp) {
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(10);
  run(gate);
  clock_.advance(2000ms);
  run(gate);
  EXPECT_EQ(recorder_.frames, 5) << "the sixth is not due";
  EXPECT_THAT(times(), ElementsAre(0, 1));
}

TEST_F(CameraTest, LoopsWithoutABreakInTime) {
  for (int pass = 0; pass < 4; ++pass) sources_.add(url_, frames({1, 2, 3, 4}));
  auto settings = camera("gate", config::Pace::realtime);
  settings->stream.loop = true;
  Camera gate = make(settings);
  gate.grant(100);
  const auto start = clock_.now();
  play(gate, 5700ms);
  EXPECT_THAT(times(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(patches_[5]->captured.steady - start, 5500ms) << "each pass is paced, too";
  EXPECT_THAT(recorder_.states, ElementsAre("connecting: /clips/gate.mp4", "up"));
  EXPECT_EQ(recorder_.reconnects, 0);
}

TEST_F(LiveCameraTest, ItsTimeIsSetByTheClockWhenItFallsBehind) {
  // The source was silent for 40 s, and its timestamps do not tell: a frame a half second, as ever.
  int calls = 0;
  Camera gate = live([&](LiveReader&) {
    clock_.advance(++calls == 4 ? 40s : 500ms);
    return LiveReader::frame(calls * 0.5);
  });
  gate.grant(100);
  run(gate, 4);
  ASSERT_EQ(patches_.size(), 4U);
  EXPECT_EQ(patches_[1]->frames.size(), 1U) << "no patch spans the gap";
  EXPECT_THAT(times(), ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(1.5, 1e-9), DoubleNear(41.5, 1e-9),
                                   DoubleNear(42.5, 1e-9)));
}

TEST_F(LiveCameraTest, ALittleLatenessIsNoGap) {
  int calls = 0;
  Camera gate = live([&](LiveReader&) {
    clock_.advance(++calls == 4 ? 9s : 500ms);
    return LiveReader::frame(calls * 0.5);
  });
  gate.grant(100);
  run(gate, 4);
  EXPECT_THAT(times(), ElementsAre(0.5, 1.5, 2.5, 3.5));
}

TEST_F(LiveCameraTest, WhatAServerKeptIsNoFuture) {
  // 30 frames at once when it connects, as they are of 6 s; then one each 0.2 s. Of these, 2 a second are
  // sampled.
  int calls = 0;
  Camera gate = live([&](LiveReader&) {
    const double seconds = 0.5 * calls++;
    if (seconds >= 6) clock_.advance(500ms);
    return LiveReader::frame(seconds);
  });
  gate.grant(100);
  const auto start = clock_.now();
  run(gate, 12);
  ASSERT_EQ(patches_.size(), 12U);
  const double now = std::chrono::duration<double>(clock_.now() - start).count();
  EXPECT_LE(patches_.back()->seconds, now + 1) << "half a stride ahead of the clock at most";
  EXPECT_GE(patches_.back()->seconds, now - 2);
  EXPECT_GT(recorder_.dropped["ahead"], 0U);
  stream::SlidingWindow window;
  std::vector<double> ends;
  std::vector<base::Clock::WallTime> walls;
  for (const FramePatchPtr& patch : patches_) {
    model::VisualTokens tokens;
    tokens.kept = base::GridMask::all(1, 1);
    tokens.seconds = patch->seconds;
    tokens.duration = patch->duration;
    for (const auto& due : window.push(tokens, {6, 1, 0.25}).due) {
      ends.push_back(due.end);
      walls.push_back(patch->captured.wall);
    }
  }
  ASSERT_GE(ends.size(), 11U);
  for (std::size_t i = 1; i < ends.size(); ++i) {
    EXPECT_EQ(ends[i], ends[i - 1] + 1);
    EXPECT_GE(walls[i] - walls[i - 1], 400ms) << "two windows of one moment";
  }
}

TEST_F(LiveCameraTest, WhatComesAtOnceAfterADelayHasMomentsOfItsOwn) {
  // 4 s late, then all of it at once.
  int calls = 0;
  Camera gate = live([&](LiveReader&) {
    ++calls;
    if (calls <= 2) clock_.advance(500ms);
    if (calls == 3) clock_.advance(4s);
    return LiveReader::frame(calls * 0.5);
  });
  gate.grant(100);
  run(gate, 4);
  ASSERT_EQ(patches_.size(), 4U);
  EXPECT_EQ(recorder_.dropped["ahead"], 0U) << "its time is not ahead";
  for (std::size_t i = 1; i < patches_.size(); ++i)
    EXPECT_GT(patches_[i]->captured.wall, patches_[i - 1]->captured.wall);
}

TEST_F(LiveCameraTest, AWallClockThatWasSetBackIsBelieved) {
  int calls = 0;
  Camera gate = live([&](LiveReader&) {
    clock_.advance(500ms);
    if (++calls == 3) clock_.jump(-1h);
    return LiveReader::frame(calls * 0.5);
  });
  gate.grant(100);
  run(gate, 2);
  ASSERT_EQ(patches_.size(), 2U);
  EXPECT_EQ(patches_[1]->captured.wall, clock_.wall());
}

TEST_F(LiveCameraTest, ARecordingThatIsSentAtOnceIsPaced) {
  int calls = 0;
  Camera gate = live([&](LiveReader&) { return LiveReader::frame(calls++ * 0.5); }, /*duration=*/60);
  gate.grant(100);
  const auto start = clock_.now();
  play(gate, 5s);
  EXPECT_EQ(recorder_.frames, 11);
  EXPECT_EQ(clock_.now() - start, 5s);
}

}  // namespace
}  // namespace vigil::actors
