#include "actors/router/second_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using ::testing::ElementsAre;

class SecondGateTest : public ::testing::Test {
 protected:
  bool pass(std::uint64_t sequence, std::uint32_t generation = 3) {
    FramePatch patch;
    patch.sequence = sequence;
    patch.generation = generation;
    return gate_.pass(patch);
  }
  static PatchAck ack(std::uint64_t sequence, PatchOutcome outcome = PatchOutcome::encoded,
                      std::uint32_t generation = 3) {
    return {"gate", generation, sequence, outcome, "", {.share = 0.5}};
  }

  SecondGate gate_;
};

TEST_F(SecondGateTest, WhatHasNoCreditGoesBy) {
  EXPECT_FALSE(pass(0)) << "it has not joined";
  gate_.join(3);
  EXPECT_FALSE(pass(1)) << "nothing was granted yet";
  gate_.grant(2);
  EXPECT_TRUE(pass(2) && pass(3));
  EXPECT_FALSE(pass(4));
  EXPECT_THAT(gate_.under_way(), ElementsAre(2, 3));
  EXPECT_EQ(gate_.acknowledge(ack(2)), std::nullopt) << "the former's is what the camera hears";
  EXPECT_TRUE(pass(5));
  EXPECT_FALSE(pass(6));
  EXPECT_DOUBLE_EQ(gate_.advice().share, 0.5);
}

TEST_F(SecondGateTest, AnotherIncarnationIsAnotherMatter) {
  gate_.join(3);
  gate_.grant(2);
  EXPECT_FALSE(pass(1, 2));
  EXPECT_TRUE(pass(2));
  EXPECT_EQ(gate_.acknowledge(ack(2, PatchOutcome::unknown, 2)), std::nullopt);
  EXPECT_THAT(gate_.under_way(), ElementsAre(2));
  gate_.join(4);
  EXPECT_FALSE(pass(3, 4)) << "it has to be granted anew";
}

TEST_F(SecondGateTest, TheCameraHearsThatWholePicturesAreNeededAndGetsNoCreditForIt) {
  gate_.join(3);
  gate_.grant(2);
  pass(2);
  const auto heard = gate_.acknowledge(ack(2, PatchOutcome::unknown));
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->outcome, PatchOutcome::lost);
  EXPECT_EQ(heard->sequence, 2U);
  EXPECT_EQ(gate_.acknowledge(ack(2, PatchOutcome::unknown)), std::nullopt) << "once";
  pass(3);
  EXPECT_EQ(gate_.acknowledge(ack(3, PatchOutcome::lost)), std::nullopt) << "it has it from the former";
}

TEST_F(SecondGateTest, WhatIsGrantedAfterADeviceBeganAnewIsWhatWasMissing) {
  gate_.join(3);
  gate_.grant(4);
  pass(0);
  gate_.acknowledge(ack(0, PatchOutcome::lost));
  gate_.grant(1);
  EXPECT_TRUE(pass(1) && pass(2) && pass(3) && pass(4));
  EXPECT_FALSE(pass(5));
}

TEST_F(SecondGateTest, NothingFollowsAnEnd) {
  gate_.join(3);
  gate_.grant(2);
  gate_.end();
  EXPECT_FALSE(gate_.has_joined());
  EXPECT_FALSE(pass(0));
}

}  // namespace
}  // namespace vigil::actors
