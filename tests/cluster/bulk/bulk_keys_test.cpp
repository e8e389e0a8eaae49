// Who is let in, over CURVE and in memory: a key is a name, and nobody has another's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/bulk/fixture.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::SizeIs;
using enum BulkDirection;

class BulkKeysTest : public BulkPortTest {};

TEST_P(BulkKeysTest, AKeyThatIsNotListedIsNotLetIn) {
  start(a_, options("a"), {"b"});
  // It says that it is b, by a key that nobody knows.
  b_.port = world_->port(options("b"), b_.heard, "stranger");
  list(b_, {"a"});
  EXPECT_TRUE(world_->until([&] { return b_.port->counters()["a"].dials >= 5; }));
  EXPECT_FALSE(b_.port->counters()["a"].incoming.open);
  EXPECT_FALSE(a_.port->counters()["b"].outgoing.open);
  EXPECT_THAT(b_.heard.opened("a", incoming), SizeIs(0));
}

TEST_P(BulkKeysTest, NobodyHasAnothersName) {
  start(a_, options("a"), {"b", "c"});
  start(c_, options("c"), {"a"});
  // It is listed as c, and says that it is b.
  b_.port = world_->port(options("b"), b_.heard, "c");
  list(b_, {"a"});
  EXPECT_TRUE(world_->until([&] {
    return b_.port->counters()["a"].failed_dials[static_cast<std::size_t>(BulkEnd::refused)] >= 2;
  }));
  EXPECT_FALSE(a_.port->counters()["b"].outgoing.open);
  EXPECT_TRUE(world_->until([&] { return a_.port->counters()["c"].outgoing.open; }));
}

TEST_P(BulkKeysTest, AnotherKeyThanTheServersIsNoServer) {
  // b listens where a is expected, with a key that is not a's.
  start(b_, options("b"), {});
  BulkPeer false_a = world_->peer("b");
  false_a.name = "a";
  false_a.keys = world_->peer("a").keys;
  c_.port = world_->port(options("c"), c_.heard);
  c_.port->set_peers({false_a});
  list(b_, {"c"});
  EXPECT_TRUE(world_->until([&] { return c_.port->counters()["a"].dials >= 4; }));
  EXPECT_THAT(c_.heard.opened("a", incoming), SizeIs(0));
}

TEST_P(BulkKeysTest, KeysAreReplacedWhileAllRuns) {
  start_both();
  world_->renew_key(*b_.port, "b");
  // Both of b's keys are listed: what b dialed goes on, and what was made to b is made anew.
  list(a_, {"b"});
  ASSERT_TRUE(world_->until([&] { return !a_.heard.resets("b", incoming).empty(); }));
  EXPECT_EQ(name_of(a_.heard.resets("b", incoming).front().why), "unlisted");
  expect_exchange(a_, "a", b_, "b");
  EXPECT_THAT(a_.heard.resets("b", outgoing), SizeIs(0));
  EXPECT_THAT(a_.heard.resets("b", incoming), SizeIs(1));
  // From the next connection on, the old one is not needed.
  world_->cut("a");
  ASSERT_TRUE(world_->until([&] { return a_.heard.opened("b", outgoing).size() == 2; }));
  BulkPeer newest = world_->peer("b");
  newest.keys.resize(1);
  a_.port->set_peers({newest});
  expect_exchange(a_, "a", b_, "b");
  for (const BulkDirection direction : {incoming, outgoing}) {
    for (const BulkReset& each : a_.heard.resets("b", direction))
      EXPECT_TRUE(each.why == BulkEnd::connection || direction == incoming);
  }
}

TEST_P(BulkKeysTest, AStreamEndsWithTheKeyThatItWasLetInBy) {
  start_both();
  world_->renew_key(*b_.port, "b");
  BulkPeer newest = world_->peer("b");
  newest.keys.resize(1);
  a_.port->set_peers({newest});
  EXPECT_TRUE(wait_reset(a_, "b", outgoing, BulkEnd::unlisted));
  EXPECT_TRUE(wait_reset(a_, "b", incoming, BulkEnd::unlisted));
  expect_exchange(a_, "a", b_, "b");
}

INSTANTIATE_TEST_SUITE_P(All, BulkKeysTest, ::testing::Values(kCurveSockets, kKeysMemory), name_of_kind);

}  // namespace
}  // namespace vigil::cluster
