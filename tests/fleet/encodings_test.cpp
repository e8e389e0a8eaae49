#include "fleet/dock/encodings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Encodings::Beginning beginning(const std::string& camera, const std::string& stream,
                               std::uint32_t generation = 1) {
  auto watch = std::make_shared<actors::WatchSettings>();
  watch->name = camera;
  return {{"a", "v", stream}, std::move(watch), generation, generation};
}

Encodings::Lane lane(std::uint32_t session) {
  return {.session = session, .own_session = 10 + session};
}

TEST(Encodings, BeginWhereNothingIs) {
  Encodings here("v");
  EXPECT_FALSE(here.is_here("gate"));
  EXPECT_EQ(here.stream_of("gate"), nullptr);
  EXPECT_FALSE(here.goes_on("gate", "s"));
  EXPECT_TRUE(here.join(beginning("gate", "s")));
  EXPECT_TRUE(here.goes_on("gate", "s"));
  EXPECT_FALSE(here.goes_on("gate", "other"));
  EXPECT_TRUE(here.is_here("gate"));
  EXPECT_EQ(*here.stream_of("gate"), "s");
  EXPECT_FALSE(here.waits("gate"));
  EXPECT_TRUE(here.join(beginning("gate", "s", 2))) << "again, for the same stream";
  EXPECT_THAT(here.ending(), IsEmpty());
}

TEST(Encodings, AnotherStreamWaitsForTheEndOfWhatIsHere) {
  Encodings here("v");
  here.join(beginning("gate", "s"));
  EXPECT_EQ(here.open("gate", lane(1)).stream, "s");
  EXPECT_FALSE(here.join(beginning("gate", "other", 2)));
  EXPECT_THAT(here.ending(), ElementsAre("gate"));
  EXPECT_TRUE(here.waits("gate"));
  EXPECT_FALSE(here.goes_on("gate", "s"));
  EXPECT_EQ(*here.stream_of("gate"), "s") << "until it has ended";
  EXPECT_FALSE(here.join(beginning("gate", "s", 3))) << "it ends, whoever comes";
  EXPECT_FALSE(here.join(beginning("gate", "other", 4)));

  const auto over = here.lane_over("gate");
  ASSERT_TRUE(over);
  EXPECT_EQ(over->lane.session, 1U);
  ASSERT_TRUE(over->next);
  EXPECT_EQ(over->next->generation, 4U) << "whoever came last";
  EXPECT_EQ(*here.stream_of("gate"), "other");
  EXPECT_THAT(here.ending(), IsEmpty());
  EXPECT_EQ(here.lane("gate"), nullptr);
  EXPECT_EQ(here.open("gate", lane(2)).stream, "other");
}

TEST(Encodings, AStreamThatGoesOnWithAnotherTowerIsLeftOnce) {
  Encodings here("v");
  here.leaves_stream("gate");
  EXPECT_EQ(here.describe(), "") << "nothing is here of it";
  here.join(beginning("gate", "s"));
  here.open("gate", lane(1));
  here.leaves_stream("gate");
  here.ends_now("gate");
  EXPECT_FALSE(here.join(beginning("gate", "s", 2))) << "it comes back while it ends";
  auto over = here.lane_over("gate");
  ASSERT_TRUE(over);
  EXPECT_TRUE(over->stream_stays);
  ASSERT_TRUE(over->next);
  here.open("gate", lane(2));
  here.ends_now("gate");
  over = here.lane_over("gate");
  ASSERT_TRUE(over);
  EXPECT_FALSE(over->stream_stays) << "the next end is the camera's";
}

TEST(Encodings, AStreamOfThisNodeEndsWithoutALane) {
  Encodings here("v");
  here.join(beginning("gate", "v"));
  here.ends_now("gate");
  EXPECT_FALSE(here.join(beginning("gate", "v", 2))) << "it comes back while it ends";
  const auto next = here.stream_over("gate");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->generation, 2U);
  here.ends_now("gate");
  EXPECT_FALSE(here.stream_over("gate"));
  EXPECT_FALSE(here.is_here("gate"));
  EXPECT_EQ(here.describe(), "");
}

TEST(Encodings, AnEndOfAStreamHereIsNotThatOfALaneElsewhere) {
  Encodings here("v");
  here.join(beginning("gate", "s"));
  here.open("gate", lane(1));
  // What another tower has brought to this node's stream before.
  EXPECT_FALSE(here.stream_over("gate"));
  EXPECT_EQ(*here.stream_of("gate"), "s");
  EXPECT_NE(here.lane("gate"), nullptr);
  here.join(beginning("gate", "other", 2));
  EXPECT_FALSE(here.stream_over("gate"));
  EXPECT_THAT(here.ending(), ElementsAre("gate")) << "its lane's end is still to come";
  EXPECT_TRUE(here.waits("gate"));
  EXPECT_TRUE(here.lane_over("gate")->next);
}

TEST(Encodings, ALaneThatIsGivenUpIsNotGoneOnWith) {
  Encodings here("v");
  here.join(beginning("gate", "s"));
  here.open("gate", lane(1));
  EXPECT_THAT(here.lanes_to("s"), ElementsAre("gate"));
  EXPECT_THAT(here.lanes_to("other"), IsEmpty());
  here.lane("gate")->goes_on = false;
  EXPECT_THAT(here.lanes_to("s"), IsEmpty());
  EXPECT_FALSE(here.join(beginning("gate", "s", 2)))
      << "for the same stream, too: the lane's end comes first";
  EXPECT_TRUE(here.waits("gate"));
}

TEST(Encodings, WhatWaitsTakesNewSettingsAndMayGo) {
  Encodings here("v");
  auto settings = std::make_shared<actors::WatchSettings>();
  settings->name = "gate";
  settings->tenant = "new";
  EXPECT_FALSE(here.renew(settings)) << "nothing waits";
  here.join(beginning("gate", "s"));
  EXPECT_FALSE(here.renew(settings));
  here.join(beginning("gate", "other"));
  EXPECT_TRUE(here.renew(settings));
  EXPECT_TRUE(here.drop_waiting("gate"));
  EXPECT_FALSE(here.drop_waiting("gate"));
  EXPECT_TRUE(here.is_here("gate")) << "what is here still ends";
  here.join(beginning("gate", "other"));
  here.renew(settings);
  here.open("gate", lane(1));
  EXPECT_EQ(here.lane_over("gate")->next->watch->tenant, "new");
}

TEST(Encodings, OneThatIsGivenUpIsEncodedElsewhere) {
  Encodings here("v");
  EXPECT_FALSE(here.give_up("gate"));
  here.join(beginning("gate", "s"));
  here.open("gate", lane(1));
  here.join(beginning("gate", "other"));
  EXPECT_TRUE(here.give_up("gate"));
  EXPECT_FALSE(here.give_up("gate"));
  const auto over = here.lane_over("gate");
  ASSERT_TRUE(over) << "what is on its way still comes out";
  EXPECT_FALSE(over->next) << "and nothing begins then";
  EXPECT_EQ(here.describe(), "");
}

TEST(Encodings, OfADeviceThatIsLostLanesJoinAgainOrAreOver) {
  Encodings here("v");
  for (const char* camera : {"gate", "hall", "yard"}) here.join(beginning(camera, "s"));
  here.open("gate", lane(1));
  here.open("hall", lane(2)).goes_on = false;
  here.open("yard", lane(3));
  EXPECT_THAT(here.drop_lanes([](const Encodings::Lane& each) { return each.session < 3; }),
              ElementsAre("hall"));
  EXPECT_EQ(here.lane("gate"), nullptr);
  EXPECT_EQ(*here.stream_of("gate"), "s") << "it goes on with the next device";
  EXPECT_NE(here.lane("hall"), nullptr) << "until it is told that it is over";
  EXPECT_NE(here.lane("yard"), nullptr);
  EXPECT_TRUE(here.lane_over("hall"));
  EXPECT_FALSE(here.lane_over("hall"));
  EXPECT_FALSE(here.lane_over("nobody"));
}

TEST(Encodings, ALaneOfWhatIsOverHasNoStream) {
  Encodings here("v");
  EXPECT_EQ(here.open("gate", lane(1)).stream, "");
}

}  // namespace
}  // namespace vigil::fleet
