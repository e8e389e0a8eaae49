#include "fleet/dock/texts_away.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TextsAwayTest : public ::testing::Test {
 protected:
  /// By a ticket of its own that is 100 more.
  void ask(std::uint64_t own, const std::string& node = "") {
    texts_.ask(own, {{"gate", 1, own}, 2, own + 100}, {}, node);
  }

  actors::testing::ManualClock clock_;
  TextsAway texts_{clock_, "s1"};
};

TEST_F(TextsAwayTest, ACamerasTextsGoWhereItsNewestOwnerSays) {
  EXPECT_EQ(texts_.place_of("gate"), "");
  EXPECT_EQ(texts_.know({"gate", 5, "s2"}), "s2");
  EXPECT_EQ(texts_.place_of("gate"), "s2");
  EXPECT_EQ(texts_.know({"gate", 4, "s3"}), "") << "an owner before that one";
  EXPECT_EQ(texts_.place_of("gate"), "s2");
  EXPECT_EQ(texts_.know({"gate", 5, "s3"}), "s3") << "the same owner, by its next plan";
  EXPECT_EQ(texts_.place_of("gate"), "s3");
  EXPECT_EQ(texts_.know({"gate", 6, ""}), "");
  EXPECT_EQ(texts_.place_of("gate"), "");
  EXPECT_EQ(texts_.know({"gate", 5, "s2"}), "");
  EXPECT_EQ(texts_.place_of("gate"), "") << "what is nowhere has a fence, too";
  EXPECT_EQ(texts_.place_of("yard"), "");
}

TEST_F(TextsAwayTest, ACameraThatHasEndedIsForgottenUnlessItIsOnItsWayBack) {
  texts_.know({"gate", 5, "s2"});
  texts_.forget("gate", 4);
  EXPECT_EQ(texts_.place_of("gate"), "s2") << "a later owner has said so";
  texts_.forget("gate", 5);
  EXPECT_EQ(texts_.place_of("gate"), "");
  EXPECT_EQ(texts_.know({"gate", 3, "s3"}), "s3") << "nothing is left of it";
  texts_.forget("yard", 9);
}

TEST_F(TextsAwayTest, ThisNodeIsNoOtherOne) {
  EXPECT_EQ(texts_.know({"gate", 5, "s1"}), "");
  EXPECT_EQ(texts_.place_of("gate"), "");
}

TEST_F(TextsAwayTest, KnowsWhoAskedForWhatUntilItIsTaken) {
  ask(1);
  ask(2, "s2");
  ASSERT_NE(texts_.find(2), nullptr);
  EXPECT_EQ(texts_.find(2)->window.number, 2U);
  EXPECT_EQ(texts_.find(2)->rule, 2U);
  EXPECT_EQ(texts_.take(2)->ticket, 102U);
  EXPECT_EQ(texts_.find(2), nullptr);
  EXPECT_FALSE(texts_.take(2)) << "a second explanation is nobody's";
  EXPECT_FALSE(texts_.take(77));
  EXPECT_NE(texts_.find(1), nullptr);
}

TEST_F(TextsAwayTest, WhatStaysIsAwayNoMore) {
  ask(1, "s2");
  ask(2, "s3");
  ask(3, "s2");
  ask(4);
  EXPECT_THAT(texts_.at("s2"), ElementsAre(1, 3));
  ASSERT_NE(texts_.find_away(1), nullptr);
  EXPECT_EQ(texts_.find_away(1)->node, "s2");
  EXPECT_EQ(texts_.find_away(4), nullptr);
  EXPECT_EQ(texts_.find_away(77), nullptr);
  texts_.stay(1);
  EXPECT_EQ(texts_.find_away(1), nullptr);
  EXPECT_NE(texts_.find(1), nullptr) << "it is explained here";
  EXPECT_THAT(texts_.at("s2"), ElementsAre(3));
  texts_.stay(77);
  texts_.sent(77, 5);
  EXPECT_EQ(texts_.find(77), nullptr) << "what is not there does not come to be";
}

TEST_F(TextsAwayTest, ANodeHasSoManyTextsAtOnceAndNoMore) {
  for (std::uint64_t own = 1; own < TextsAway::kMostTexts; ++own) ask(own, "s2");
  ask(1000);
  EXPECT_TRUE(texts_.has_room("s2"));
  ask(TextsAway::kMostTexts, "s2");
  EXPECT_FALSE(texts_.has_room("s2"));
  EXPECT_TRUE(texts_.has_room("s3"));
  texts_.stay(1);
  EXPECT_TRUE(texts_.has_room("s2"));
}

TEST_F(TextsAwayTest, ANodeHasSoManyBytesOfPagesAtOnceAndNoMore) {
  ask(1, "s2");
  ask(2, "s2");
  texts_.sent(1, TextsAway::kMostBytes - 1);
  EXPECT_TRUE(texts_.has_room("s2"));
  texts_.sent(2, 1);
  EXPECT_FALSE(texts_.has_room("s2"));
  EXPECT_TRUE(texts_.has_room("s3"));
  texts_.take(2);
  EXPECT_TRUE(texts_.has_room("s2"));
}

TEST_F(TextsAwayTest, WhatDoesNotComeBackInTimeIsTold) {
  ask(1, "s2");
  ask(2);
  clock_.advance(1s);
  ask(3, "s3");
  clock_.advance(TextsAway::kPatience - 1s);
  EXPECT_THAT(texts_.overdue(), IsEmpty());
  clock_.advance(1ms);
  EXPECT_THAT(texts_.overdue(), ElementsAre(1)) << "what is here has until it is forgotten";
  texts_.stay(1);
  EXPECT_THAT(texts_.overdue(), IsEmpty());
  clock_.advance(1s);
  EXPECT_THAT(texts_.overdue(), ElementsAre(3));
}

TEST_F(TextsAwayTest, WhatNobodyWaitsForIsForgotten) {
  ask(1, "s2");
  ask(2);
  clock_.advance(1s);
  ask(3);
  clock_.advance(19s);
  texts_.forget_old();
  EXPECT_NE(texts_.find(1), nullptr);
  clock_.advance(1ms);
  texts_.forget_old();
  EXPECT_EQ(texts_.find(1), nullptr);
  EXPECT_EQ(texts_.find(2), nullptr);
  EXPECT_NE(texts_.find(3), nullptr);
}

}  // namespace
}  // namespace vigil::fleet
