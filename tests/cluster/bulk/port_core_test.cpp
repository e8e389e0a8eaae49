// Whom a port lets in, step by step.
#include "cluster/bulk/port_core.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/virtual_time.h"
#include "tests/cluster/bulk/heard.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using enum BulkDirection;

/// What was said on connections that others made.
class Said final : public BulkLinks {
 public:
  bool dial(const BulkPeer& /*peer*/, const std::string& /*key*/) override {
    ++dials;
    return can_dial;
  }
  void hang_up(const std::string& /*peer*/, bool told) override { hung_up.push_back(told); }
  void send_dialed(const std::string& /*peer*/, Frames /*frames*/) override {}
  bool send_accepted(const BulkConnection& /*connection*/, Frames frames) override {
    auto decoded = decode(frames, {}, false);
    if (auto* parcel = std::get_if<BulkParcel>(&decoded)) parcels.push_back(std::move(*parcel));
    return true;
  }
  void welcomed(const BulkConnection& connection) override { guests.push_back(connection); }
  void dismiss(const BulkConnection& connection, bool told) override {
    dismissed.emplace_back(connection, told);
  }

  bool can_dial = true;
  int dials = 0;
  std::vector<BulkParcel> parcels;
  std::vector<BulkConnection> guests;
  std::vector<bool> hung_up;
  std::vector<std::pair<BulkConnection, bool>> dismissed;
};

struct PortCoreTest : ::testing::Test {
  static BulkHello hello() {
    return {.from = "b", .to = "a", .incarnation = 5, .grant = {1 << 20, 10}, .limits = {}};
  }
  /// b has come by this connection.
  void meet(const BulkConnection& connection) {
    core.set_peers({{"b", "tcp://127.0.0.1:1"}}, /*encrypted=*/false);
    core.step();
    core.accepted(connection, "", encode(hello()));
  }
  /// How often b says it before its stream ends by `why`.
  std::size_t until_cut(const BulkConnection& connection, const Frames& frames) {
    const std::size_t before = heard.resets("b", outgoing).size();
    for (std::size_t said_so_far = 0; said_so_far < 5000; ++said_so_far) {
      core.accepted(connection, "", frames);
      if (heard.resets("b", outgoing).size() > before) {
        EXPECT_EQ(name_of(heard.resets("b", outgoing).back().why), "limits");
        return said_so_far;
      }
    }
    return 5000;
  }

  Heard heard;
  Said said;
  base::VirtualTime clock;
  PortCore core{{.name = "a"}, heard, said, clock, [] {}};
};

TEST_F(PortCoreTest, WhoeverWasListedBeforeItSpokeIsLetIn) {
  core.set_peers({{"b", "tcp://127.0.0.1:1"}}, /*encrypted=*/false);
  // Not a step of the port lies between.
  core.accepted("connection", "", encode(hello()));
  EXPECT_THAT(heard.opened("b", outgoing), SizeIs(1));
  EXPECT_EQ(said.guests, std::vector<BulkConnection>{"connection"});
}

TEST_F(PortCoreTest, WhoeverIsListedNoMoreIsRefused) {
  core.set_peers({{"b", "tcp://127.0.0.1:1"}}, /*encrypted=*/false);
  core.step();
  core.set_peers({}, /*encrypted=*/false);
  core.accepted("connection", "", encode(hello()));
  EXPECT_THAT(heard.opened("b", outgoing), IsEmpty());
  ASSERT_THAT(said.parcels, SizeIs(1));
  const auto* bye = std::get_if<BulkBye>(&said.parcels.front());
  ASSERT_NE(bye, nullptr);
  EXPECT_EQ(bye->why, BulkEnd::refused);
}

TEST_F(PortCoreTest, WhoeverCannotBeDialedIsTriedAgain) {
  said.can_dial = false;
  core.set_peers({{"b", "tcp://127.0.0.1:1"}}, /*encrypted=*/false);
  core.step();
  EXPECT_EQ(said.dials, 1);
  EXPECT_EQ(core.counters().at("b").failed_dials.at(static_cast<std::size_t>(BulkEnd::connection)), 1U);
  clock.advance(std::chrono::minutes(1));
  core.step();
  EXPECT_EQ(said.dials, 2);
}

TEST_F(PortCoreTest, AKeyIsItsOwnersAsSoonAsItIsListed) {
  core.set_peers({{"b", "tcp://127.0.0.1:1", {"old"}}}, /*encrypted=*/true);
  EXPECT_EQ(core.peer_of("old"), "b");
  core.set_peers({{"b", "tcp://127.0.0.1:1", {"new"}}}, /*encrypted=*/true);
  EXPECT_EQ(core.peer_of("new"), "b");
  EXPECT_EQ(core.peer_of("old"), std::nullopt);
}

TEST_F(PortCoreTest, WhatNobodyAskedForIsBoundedByCountOverAllConnectionsOfAPeer) {
  meet("first");
  EXPECT_EQ(until_cut("first", encode(BulkAlive{})), 1000U);
  EXPECT_THAT(said.dismissed, ElementsAre(Pair("first", true)));
  // It comes again, and has not got more by that.
  core.accepted("second", "", encode(hello()));
  ASSERT_THAT(heard.opened("b", outgoing), SizeIs(2));
  EXPECT_EQ(until_cut("second", encode(BulkCredit{})), 0U);
  clock.advance(std::chrono::seconds(1));
  core.accepted("third", "", encode(hello()));
  EXPECT_EQ(until_cut("third", encode(BulkCredit{{}, {1, 1}})), 100U);
  // As often as it should, it may for ever.
  core.accepted("fourth", "", encode(hello()));
  for (int i = 0; i < 5000; ++i) {
    clock.advance(std::chrono::milliseconds(100));
    core.accepted("fourth", "", encode(BulkAlive{}));
  }
  EXPECT_THAT(heard.resets("b", outgoing), SizeIs(3));
}

TEST_F(PortCoreTest, CreditForWhatWasSentIsNotCounted) {
  meet("connection");
  for (int i = 0; i < 3000; ++i) {
    const BulkSent sent = core.send("b", {"one", {}});
    ASSERT_TRUE(sent);
    core.step();
    core.accepted("connection", "", encode(BulkCredit{{sent.number}, {}}));
  }
  EXPECT_THAT(heard.resets("b", outgoing), IsEmpty());
}

TEST_F(PortCoreTest, ASenderThatOnlySaysThatItIsThereIsHungUpOn) {
  core.set_peers({{"b", "tcp://127.0.0.1:1"}}, /*encrypted=*/false);
  core.step();
  core.dialed("b", encode(BulkWelcome{.incarnation = 1, .number = 1}));
  ASSERT_THAT(heard.opened("b", incoming), SizeIs(1));
  for (int i = 0; i < 1000; ++i) core.dialed("b", encode(BulkAlive{}));
  EXPECT_THAT(heard.resets("b", incoming), IsEmpty());
  core.dialed("b", encode(BulkAlive{}));
  ASSERT_THAT(heard.resets("b", incoming), SizeIs(1));
  EXPECT_EQ(name_of(heard.resets("b", incoming).front().why), "limits");
  EXPECT_THAT(said.hung_up, ElementsAre(true));
}

TEST_F(PortCoreTest, WhoeverBeginsAnewAgainAndAgainIsRefusedAndTheStreamStands) {
  core.set_peers({{"b", "tcp://127.0.0.1:1"}}, /*encrypted=*/false);
  for (int i = 0; i < 200; ++i) core.accepted(std::to_string(i), "", encode(hello()));
  EXPECT_THAT(heard.opened("b", outgoing), SizeIs(100));
  EXPECT_THAT(heard.resets("b", outgoing), SizeIs(99));
  const auto* bye = std::get_if<BulkBye>(&said.parcels.back());
  ASSERT_NE(bye, nullptr);
  EXPECT_EQ(name_of(bye->why), "limits");
  EXPECT_TRUE(core.send("b", {"to the last that was let in", {}}));
  clock.advance(std::chrono::seconds(1));
  for (int i = 200; i < 300; ++i) core.accepted(std::to_string(i), "", encode(hello()));
  EXPECT_THAT(heard.opened("b", outgoing), SizeIs(110));
}

TEST_F(PortCoreTest, WhatIsTooMuchToBeKeptEndsTheStreamAtOnce) {
  meet("connection");
  core.dialed("b", encode(BulkWelcome{.incarnation = 1, .number = 1}));
  core.accepted_overrun("connection");
  core.dial_overrun("b");
  // Of those who are nobody yet, or nobody any more.
  core.accepted_overrun("stranger");
  core.accepted_overrun("connection");
  core.dial_overrun("b");
  core.dial_overrun("stranger");
  for (const BulkDirection direction : {incoming, outgoing}) {
    ASSERT_THAT(heard.resets("b", direction), SizeIs(1));
    EXPECT_EQ(name_of(heard.resets("b", direction).front().why), "limits");
  }
  EXPECT_THAT(said.dismissed,
              ElementsAre(Pair("connection", false), Pair("stranger", false), Pair("connection", false)));
  EXPECT_THAT(said.hung_up, ElementsAre(false));
}

TEST_F(PortCoreTest, AKeyStaysWithWhoeverHasIt) {
  core.set_peers({{"b", "tcp://127.0.0.1:1", {"key of b"}}}, /*encrypted=*/true);
  const BulkPeer thief{"a", "tcp://127.0.0.1:2", {"key of b"}};
  const BulkPeer b{"b", "tcp://127.0.0.1:1", {"key of b"}};
  const BulkPeer c{"c", "tcp://127.0.0.1:3", {"key of c"}};
  EXPECT_THAT(core.set_peers({thief, b, c}, /*encrypted=*/true),
              ElementsAre(BulkRefusal{"a", "its key is that of b"}));
  EXPECT_EQ(core.peer_of("key of b"), "b");
  EXPECT_EQ(core.peer_of("key of c"), "c");
  EXPECT_THAT(core.set_peers({c}, /*encrypted=*/true), IsEmpty());
  EXPECT_EQ(core.peer_of("key of b"), std::nullopt);
}

}  // namespace
}  // namespace vigil::cluster
