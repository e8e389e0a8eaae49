#include "actors/router/patch_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PatchGateTest : public ::testing::Test {
 protected:
  /// Sends so many patches of two frames; how many pass.
  int send(int patches, std::uint32_t generation = 0) {
    int passed = 0;
    for (int i = 0; i < patches; ++i) {
      FramePatch patch;
      patch.watch = gate_camera_->ref();
      patch.frames.resize(2);
      patch.generation = generation;
      patch.sequence = sequence_++;
      passed += gate_.pass(patch) ? 1 : 0;
    }
    return passed;
  }

  WatchPtr gate_camera_ = watch("gate");
  /// What the device did with the patch of this sequence.
  bool encoded(std::uint64_t sequence, std::uint32_t generation = 0) {
    return gate_.acknowledge({"gate", generation, sequence, PatchOutcome::encoded});
  }

  std::uint64_t sequence_ = 0;
  PatchGate gate_;
};

TEST_F(PatchGateTest, ACameraJoinsWhenItsGateOpens) {
  EXPECT_FALSE(gate_.join(gate_camera_, 3).has_value());
  const auto told = gate_.open("gate");
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->camera, "gate");
  EXPECT_EQ(told->watch, gate_camera_);
  EXPECT_EQ(told->generation, 3U);
  EXPECT_TRUE(told->joins);
  EXPECT_FALSE(told->ends);
  EXPECT_EQ(gate_.grant("gate", 8), 8U);
  EXPECT_EQ(gate_.grant("gate", 8), 0U) << "it has them already";
}

TEST_F(PatchGateTest, AnotherDeviceGivesNoMoreCreditThanItHasRoomFor) {
  gate_.open("gate");
  gate_.join(gate_camera_, 0);
  gate_.grant("gate", 8);
  EXPECT_EQ(send(5), 5);
  EXPECT_TRUE(encoded(0) && encoded(1)) << "now the camera has 5, and 3 are under way";
  gate_.shut("gate");
  EXPECT_EQ(send(1), 0) << "nowhere to go, and the credit is spent";
  const auto told = gate_.open("gate");
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->joins);
  EXPECT_EQ(told->lost_frames, 6U);
  EXPECT_THAT(told->lost, ElementsAre(PatchAck{"gate", 0, 2, PatchOutcome::lost, "device_lost"},
                                      PatchAck{"gate", 0, 3, PatchOutcome::lost, "device_lost"},
                                      PatchAck{"gate", 0, 4, PatchOutcome::lost, "device_lost"}));
  EXPECT_FALSE(encoded(2)) << "what the last device says of it comes too late";
  EXPECT_EQ(send(1), 1) << "before the device told its credit";
  EXPECT_EQ(gate_.grant("gate", 8), 4U) << "3 are left and 1 is under way";
  EXPECT_TRUE(encoded(6));
  EXPECT_FALSE(encoded(6)) << "once";
}

TEST_F(PatchGateTest, WhatTheDeviceLostEarnsNothingUntilTheNextGrant) {
  gate_.open("gate");
  gate_.join(gate_camera_, 0);
  gate_.grant("gate", 4);
  EXPECT_EQ(send(3), 3);
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence)
    EXPECT_TRUE(gate_.acknowledge({"gate", 0, sequence, PatchOutcome::lost, "fenced"}));
  EXPECT_EQ(gate_.grant("gate", 4), 3U) << "the camera has 1 left";
}

TEST_F(PatchGateTest, AnEndWaitsForTheGateAndIsToldOnce) {
  gate_.open("gate");
  gate_.join(gate_camera_, 0);
  gate_.shut("gate");
  EXPECT_FALSE(gate_.end("gate").has_value());
  const auto told = gate_.open("gate");
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->joins && told->ends);
  EXPECT_FALSE(gate_.end("gate").has_value());
  // The device that was told is gone: the next has to be.
  gate_.shut("gate");
  EXPECT_FALSE(gate_.open("gate").has_value());
  const auto again = gate_.end("gate");
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->joins && again->ends);
}

TEST_F(PatchGateTest, ACameraJoinsWithTheNewestSettings) {
  const WatchPtr altered = watch("gate", 2);
  gate_.join(gate_camera_, 0);
  EXPECT_FALSE(gate_.know(altered)) << "the device does not know the camera yet";
  EXPECT_EQ(gate_.open("gate")->watch, altered);
  EXPECT_TRUE(gate_.know(watch("gate", 3)));
  EXPECT_FALSE(gate_.know(watch("yard", 4))) << "one that has not joined";
  gate_.end("gate");
  EXPECT_FALSE(gate_.know(watch("gate", 5))) << "its end was told";
}

TEST_F(PatchGateTest, TheEndOfACameraThatNeverJoinedIsToldOnceItsSettingsAreKnown) {
  gate_.open("gate");
  EXPECT_FALSE(gate_.end("gate").has_value());
  gate_.know(gate_camera_);
  const auto told = gate_.end("gate");
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->joins && told->ends);
  EXPECT_EQ(told->watch, gate_camera_);
}

TEST_F(PatchGateTest, TheNextIncarnationStartsWithoutCredit) {
  gate_.open("gate");
  gate_.join(gate_camera_, 0);
  gate_.grant("gate", 8);
  send(8);
  ASSERT_TRUE(gate_.join(gate_camera_, 1).has_value());
  EXPECT_EQ(gate_.grant("gate", 8), 8U);
  EXPECT_FALSE(encoded(3)) << "what the last one had under way earns nothing";
  EXPECT_FALSE(encoded(3, 1));
  EXPECT_EQ(send(1, 0), 1) << "what the last one had sent still passes";
  gate_.shut("gate");
  EXPECT_EQ(gate_.open("gate")->lost_frames, 0U);
}

TEST_F(PatchGateTest, WhoIsForgottenOrUnknownGetsNothing) {
  EXPECT_EQ(send(1), 0);
  EXPECT_EQ(gate_.grant("gate", 4), 0U);
  gate_.open("gate");
  gate_.join(gate_camera_, 0);
  gate_.forget("gate");
  EXPECT_EQ(send(1), 0);
  EXPECT_EQ(gate_.grant("gate", 4), 0U);
}

TEST_F(PatchGateTest, ACameraThatPassesOverWaitsForWhatIsUnderWayThereAndIsGivenTheRest) {
  EXPECT_FALSE(gate_.joined("gate").has_value());
  gate_.open("gate");
  gate_.join(gate_camera_, 3);
  const auto told = gate_.joined("gate");
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->watch, gate_camera_);
  EXPECT_EQ(told->generation, 3U);
  gate_.grant("gate", 6);
  SecondGate second;
  second.join(3);
  second.grant(6);
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) {
    send(1, 3);
    FramePatch patch;
    patch.generation = 3;
    patch.sequence = sequence;
    if (sequence != 3) second.pass(patch);
  }
  second.acknowledge({"gate", 3, 2, PatchOutcome::encoded, "", {.share = 0.25}});
  EXPECT_TRUE(encoded(0, 3)) << "of the former: the camera has 3, and 3 are under way";
  const PatchGate::Passed passed = gate_.pass_over("gate", second);
  EXPECT_THAT(passed.acks, ElementsAre(PatchAck{"gate", 3, 2, PatchOutcome::encoded, "", {.share = 0.25}},
                                       PatchAck{"gate", 3, 3, PatchOutcome::encoded, "", {.share = 0.25}}))
      << "the one has it, the other went by";
  EXPECT_EQ(passed.more, 0U) << "it has as much as there is room for";
  EXPECT_FALSE(encoded(0, 3)) << "the former's said so";
  EXPECT_TRUE(encoded(1, 3));
  EXPECT_EQ(gate_.grant("gate", 7), 1U);
}

TEST_F(PatchGateTest, WhatTheFormerLostOfTheCreditComesBackWhereItPassesOver) {
  gate_.open("gate");
  gate_.join(gate_camera_, 0);
  gate_.grant("gate", 4);
  send(2);
  gate_.acknowledge({"gate", 0, 0, PatchOutcome::encoded});
  gate_.acknowledge({"gate", 0, 1, PatchOutcome::lost});
  SecondGate second;
  second.join(0);
  second.grant(6);
  EXPECT_EQ(gate_.pass_over("gate", second).more, 3U) << "one was lost, and two more are granted";
}

TEST_F(PatchGateTest, WhereACameraHasEndedNothingJoins) {
  gate_.open("gate");
  gate_.join(gate_camera_, 0);
  gate_.end("gate");
  EXPECT_FALSE(gate_.joined("gate").has_value());
  SecondGate second;
  second.join(0);
  second.grant(6);
  EXPECT_EQ(gate_.pass_over("gate", second).more, 0U);
}

}  // namespace
}  // namespace vigil::actors
