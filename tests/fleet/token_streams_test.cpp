#include "fleet/dock/token_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using ::testing::ElementsAre;
using Joined = TokenStreams::Joined;

TokenStreams::Join join(const std::string& from, std::uint32_t session, const std::string& tenant = "") {
  auto watch = std::make_shared<actors::WatchSettings>();
  watch->name = "gate";
  watch->tenant = tenant;
  return {from, session, std::move(watch)};
}

TEST(TokenStreams, ASessionBeginsAndTakesSettings) {
  TokenStreams streams;
  EXPECT_EQ(streams.find("gate"), nullptr);
  EXPECT_FALSE(streams.renew("v", join("v", 1).watch));
  EXPECT_EQ(streams.join(join("v", 1)), Joined::begins);
  EXPECT_EQ(streams.find("gate"), nullptr) << "until there is a device";
  streams.begin(join("v", 1), "cpu");
  ASSERT_NE(streams.find("gate"), nullptr);
  EXPECT_EQ(streams.find("gate")->from, "v");
  EXPECT_EQ(streams.join(join("v", 1)), Joined::renewed);
  EXPECT_EQ(streams.renew("v", join("v", 1).watch), Joined::renewed);
  EXPECT_FALSE(streams.renew("w", join("w", 1).watch)) << "of another";
  EXPECT_EQ(streams.join(join("v", 2)), Joined::begins) << "its next session";
  EXPECT_EQ(streams.join(join("w", 1)), Joined::begins) << "another node's";
}

TEST(TokenStreams, WhoJoinsWhileItEndsWaits) {
  TokenStreams streams;
  streams.begin(join("v", 1), "cpu");
  EXPECT_FALSE(streams.end("v", 2, "gate")) << "another session";
  EXPECT_FALSE(streams.end("w", 1, "gate")) << "another node";
  EXPECT_FALSE(streams.end("v", 1, "yard"));
  EXPECT_TRUE(streams.end("v", 1, "gate"));
  EXPECT_FALSE(streams.end("v", 1, "gate")) << "once";
  EXPECT_FALSE(streams.waits("gate"));
  EXPECT_EQ(streams.join(join("w", 1)), Joined::waits);
  EXPECT_TRUE(streams.waits("gate"));
  EXPECT_EQ(streams.renew("w", join("w", 1, "new").watch), Joined::waits);
  EXPECT_FALSE(streams.renew("v", join("v", 1).watch)) << "it has ended";
  const auto next = streams.over("gate");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->from, "w");
  EXPECT_EQ(next->watch->tenant, "new");
  EXPECT_EQ(streams.find("gate"), nullptr);
  EXPECT_FALSE(streams.over("gate"));
}

TEST(TokenStreams, AStreamThatIsLeftIsEndedByNobodyWhoHadIt) {
  TokenStreams streams;
  EXPECT_FALSE(streams.leave("v", 1, "gate")) << "there is none";
  streams.begin(join("v", 1), "cpu");
  EXPECT_FALSE(streams.leave("v", 2, "gate")) << "another session";
  EXPECT_FALSE(streams.leave("w", 1, "gate")) << "another node";
  EXPECT_TRUE(streams.leave("v", 1, "gate"));
  EXPECT_FALSE(streams.end("v", 1, "gate")) << "what follows is only that of the way";
  ASSERT_NE(streams.find("gate"), nullptr);
  EXPECT_EQ(streams.join(join("w", 1)), Joined::begins);
  streams.begin(join("w", 1), "cpu");
  streams.end("w", 1, "gate");
  EXPECT_FALSE(streams.leave("w", 1, "gate")) << "it has ended";
  EXPECT_FALSE(streams.leave("v", 1, "gate")) << "it has moved";
}

TEST(TokenStreams, WhoWaitsMayEndToo) {
  TokenStreams streams;
  streams.begin(join("v", 1), "cpu");
  streams.end("v", 1, "gate");
  streams.join(join("v", 2));
  EXPECT_FALSE(streams.end("v", 2, "gate")) << "no device has it";
  EXPECT_FALSE(streams.over("gate"));

  streams.begin(join("v", 1), "cpu");
  streams.end("v", 1, "gate");
  streams.join(join("v", 2));
  EXPECT_TRUE(streams.end("gate")) << "all of it";
  EXPECT_FALSE(streams.over("gate"));
  EXPECT_FALSE(streams.end("gate"));
}

TEST(TokenStreams, ANodeThatComesAnewCountsAnew) {
  TokenStreams streams;
  streams.begin(join("v", 1), "cpu");
  EXPECT_TRUE(streams.come_anew("w").empty());
  EXPECT_THAT(streams.come_anew("v"), ElementsAre("gate"));
  EXPECT_EQ(streams.join(join("v", 1)), Joined::begins) << "it is not the session from before";
  streams.begin(join("v", 1), "cpu");
  streams.end("gate");
  streams.join(join("w", 1));
  streams.come_anew("w");
  EXPECT_FALSE(streams.over("gate")) << "what waited of it has gone, too";
}

TEST(TokenStreams, TheDeviceThatHasItIsTold) {
  TokenStreams streams;
  streams.begin(join("v", 1), "cuda:1");
  EXPECT_EQ(streams.end("v", 1, "gate"), "cuda:1");
  EXPECT_EQ(streams.end("gate"), "cuda:1") << "again, for who was not heard";
}

TEST(TokenStreams, WhatWasOnItsWayOutOfALostDeviceIsGone) {
  TokenStreams streams;
  streams.begin(join("v", 1), "cuda:0");
  streams.end("gate");
  streams.device_lost("cuda:1");
  EXPECT_NE(streams.find("gate"), nullptr) << "another's goes on to its end";
  streams.device_lost("cuda:0");
  EXPECT_EQ(streams.find("gate"), nullptr);
}

TEST(TokenStreams, WhatALostDeviceHadBeginsAnewOrIsOver) {
  TokenStreams streams;
  streams.begin(join("v", 1), "cpu");
  streams.device_lost("cpu");
  EXPECT_EQ(streams.join(join("v", 1)), Joined::begins) << "the next device knows nothing of that session";
  streams.begin(join("v", 1), "cpu");
  EXPECT_EQ(streams.end("v", 1, "gate"), "cpu");

  streams.begin(join("v", 2), "cpu");
  streams.device_lost("cpu");
  EXPECT_FALSE(streams.end("v", 2, "gate")) << "no device would tell that it came out";
  EXPECT_NE(streams.find("gate"), nullptr);
  EXPECT_FALSE(streams.end("gate"));
  EXPECT_EQ(streams.find("gate"), nullptr) << "nothing is there to wait for";
}

}  // namespace
}  // namespace vigil::fleet
