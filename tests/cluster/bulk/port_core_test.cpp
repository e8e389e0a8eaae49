// Whom a port lets in, step by step.
#include "cluster/bulk/port_core.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/virtual_time.h"
#include "tests/cluster/bulk/heard.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum BulkDirection;

/// What was said on connections that others made.
class Said final : public BulkLinks {
 public:
  bool dial(const BulkPeer& /*peer*/, const std::string& /*key*/) override {
    ++dials;
    return can_dial;
  }
  void hang_up(const std::string& /*peer*/, bool /*told*/) override {}
  void send_dialed(const std::string& /*peer*/, Frames /*frames*/) override {}
  bool send_accepted(const BulkConnection& /*connection*/, Frames frames) override {
    auto decoded = decode(frames, {}, false);
    if (auto* parcel = std::get_if<BulkParcel>(&decoded)) parcels.push_back(std::move(*parcel));
    return true;
  }
  void welcomed(const BulkConnection& connection) override { guests.push_back(connection); }
  void dismiss(const BulkConnection& /*connection*/, bool /*told*/) override {}

  bool can_dial = true;
  int dials = 0;
  std::vector<BulkParcel> parcels;
  std::vector<BulkConnection> guests;
};

struct PortCoreTest : ::testing::Test {
  static BulkHello hello() {
    return {.from = "b", .to = "a", .incarnation = 5, .grant = {1 << 20, 10}, .limits = {}};
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

}  // namespace
}  // namespace vigil::cluster
