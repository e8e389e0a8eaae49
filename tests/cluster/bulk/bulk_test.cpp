// The contract of a port, the same over sockets, with keys and without, and in memory.
#include "cluster/bulk/bulk.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/one_line.h"
#include "tests/cluster/bulk/fixture.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using enum BulkDirection;

class BulkTest : public BulkPortTest {};

TEST_P(BulkTest, WhatIsSentArrivesWholeAndInOrder) {
  start_both();
  std::mt19937_64 random(7);
  const std::vector<std::size_t> sizes = {0,         1,          100,          8 * kKiB, 8 * kKiB + 1,
                                          64 * kKiB, 300 * kKiB, 1 * kMiB - 3, 10 * kMiB};
  std::vector<BulkMessage> sent;
  for (std::uint64_t i = 0; i < 150; ++i) {
    BulkMessage message;
    message.header = std::string(random() % 300, static_cast<char>('a' + i % 26));
    const std::size_t parts = random() % 5;
    for (std::size_t part = 0; part < parts; ++part) {
      // The large ones are rarer.
      const std::size_t size = sizes[random() % (i % 25 == 0 ? sizes.size() : 6)];
      message.parts.push_back(made_bytes(i * 100 + part, size));
    }
    sent.push_back(std::move(message));
  }
  sent.push_back({});
  sent.push_back({"", {Bytes(), Bytes(), Bytes()}});
  sent.push_back({"the largest", {made_bytes(1, 10 * kMiB)}});
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(deliver(a_, "b", sent[i]).number, i + 1);
    bytes += sent[i].bytes();
    if (i % 10 == 0) {
      ASSERT_TRUE(deliver(b_, "a", sent[i]));
    }
  }
  ASSERT_TRUE(wait_count(b_, "a", sent.size()));
  ASSERT_TRUE(wait_count(a_, "b", (sent.size() + 9) / 10));
  const auto received = b_.heard.all();
  ASSERT_EQ(received.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(received[i].number, i + 1);
    EXPECT_EQ(received[i].header, sent[i].header);
    ASSERT_EQ(received[i].parts.size(), sent[i].parts.size());
    for (std::size_t part = 0; part < sent[i].parts.size(); ++part)
      EXPECT_TRUE(received[i].parts[part].text() == sent[i].parts[part].text()) << i << ' ' << part;
  }
  EXPECT_TRUE(world_->until([&] { return a_.heard.acknowledged("b").size() == sent.size(); }));
  const BulkCounters counters = a_.port->counters()["b"];
  EXPECT_EQ(counters.outgoing.messages, sent.size());
  EXPECT_EQ(counters.outgoing.bytes, bytes);
  EXPECT_EQ(counters.outgoing.waiting_bytes, 0U);
  EXPECT_EQ(counters.outgoing.waiting_messages, 0U);
  EXPECT_EQ(b_.port->counters()["a"].incoming.bytes, bytes);
  EXPECT_THAT(a_.heard.resets("b", outgoing), SizeIs(0));
}

TEST_P(BulkTest, ASlowReceiverHoldsUpItsSenderAndNothingPilesUp) {
  const BulkLimits limits{.bytes = 1 * kMiB, .messages = 1000, .message = 300 * kKiB};
  start_both({}, limits);
  b_.heard.keep("a");
  const BulkMessage message{"", {made_bytes(3, 100 * kKiB)}};
  int taken = 0;
  while (a_.port->send("b", message)) ++taken;
  EXPECT_EQ(taken, 10);
  EXPECT_EQ(a_.port->send("b", message).answer, BulkSent::Answer::no_credit);
  // A smaller one fits where a larger one does not.
  EXPECT_TRUE(a_.port->send("b", {"", {made_bytes(4, 20 * kKiB)}}));
  ASSERT_TRUE(wait_count(b_, "a", 11));
  EXPECT_EQ(a_.heard.rooms("b"), 0);
  EXPECT_THAT(a_.heard.acknowledged("b"), SizeIs(0));

  // Whatever is let go of comes back, in whatever order.
  b_.heard.release("a", 7);
  ASSERT_TRUE(world_->until([&] { return a_.heard.rooms("b") == 1; }));
  EXPECT_THAT(a_.heard.acknowledged("b"), ElementsAre(8));
  EXPECT_TRUE(a_.port->send("b", message));
  EXPECT_FALSE(a_.port->send("b", message));
  ASSERT_TRUE(wait_count(b_, "a", 12));
  std::size_t sent = 12;
  for (int round = 0; round < 30; ++round) {
    b_.heard.release_all("a");
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(deliver(a_, "b", message));
    ASSERT_TRUE(wait_count(b_, "a", sent += 10));
  }
  for (const BulkCounters::Flow& flow :
       {a_.port->counters()["b"].outgoing, b_.port->counters()["a"].incoming}) {
    EXPECT_LE(flow.most_waiting_bytes, limits.bytes);
    EXPECT_GE(flow.most_waiting_bytes, limits.bytes - 100 * kKiB);
  }
  EXPECT_GE(a_.port->counters()["b"].refused_sends, 3U);
  EXPECT_THAT(b_.heard.resets("a", incoming), SizeIs(0));
}

TEST_P(BulkTest, TimeWithoutCreditIsCounted) {
  start_both({}, {.bytes = 64 * kKiB, .messages = 1, .message = 64 * kKiB});
  b_.heard.keep("a");
  ASSERT_TRUE(a_.port->send("b", {"one", {}}));
  EXPECT_FALSE(a_.port->send("b", {"two", {}})) << "one message may be under way, however small";
  ASSERT_TRUE(wait_count(b_, "a", 1));
  world_->pass(50ms);
  EXPECT_GE(a_.port->counters()["b"].blocked, 45ms);
  b_.heard.release("a");
  ASSERT_TRUE(world_->until([&] { return a_.heard.rooms("b") == 1; }));
  const auto blocked = a_.port->counters()["b"].blocked;
  world_->pass(50ms);
  EXPECT_EQ(a_.port->counters()["b"].blocked, blocked);
}

TEST_P(BulkTest, TheSendersOwnLimitsCountToo) {
  start_both({.bytes = 100 * kKiB, .messages = 1000, .message = 60 * kKiB});
  b_.heard.keep("a");
  EXPECT_TRUE(a_.port->send("b", {"", {made_bytes(1, 60 * kKiB)}}));
  EXPECT_EQ(a_.port->send("b", {"", {made_bytes(1, 60 * kKiB)}}).answer, BulkSent::Answer::no_credit);
}

TEST_P(BulkTest, WhatNeverFitsIsRefused) {
  const BulkLimits limits{.bytes = kMiB, .message = 100 * kKiB, .header = 10, .parts = 3};
  start(a_, options("a"), {"b", "c"});
  EXPECT_EQ(a_.port->send("nobody", {}).answer, BulkSent::Answer::unknown_peer);
  EXPECT_EQ(a_.port->send("c", {}).answer, BulkSent::Answer::no_stream);
  EXPECT_EQ(a_.port->send("c", {"", {made_bytes(1, 33 * kMiB)}}).answer, BulkSent::Answer::too_large);
  start(b_, options("b", limits), {"a"});
  ASSERT_TRUE(open(a_, "b"));
  const auto sent = [&](const BulkMessage& message) { return a_.port->send("b", message).answer; };
  EXPECT_EQ(sent({"12345678901", {}}), BulkSent::Answer::too_large);
  EXPECT_EQ(sent({"", {Bytes(), Bytes(), Bytes(), Bytes()}}), BulkSent::Answer::too_large);
  EXPECT_EQ(sent({"x", {made_bytes(1, 100 * kKiB)}}), BulkSent::Answer::too_large);
  EXPECT_EQ(sent({"1234567890", {made_bytes(1, 100 * kKiB - 10), Bytes(), Bytes()}}),
            BulkSent::Answer::taken);
  EXPECT_TRUE(wait_count(b_, "a", 1));
}

TEST_P(BulkTest, EitherMayStartFirst) {
  start(b_, options("b"), {"a"});
  EXPECT_TRUE(world_->until([&] { return b_.port->counters()["a"].dials >= 3; }));
  EXPECT_EQ(b_.port->send("a", {}).answer, BulkSent::Answer::no_stream);
  start(a_, options("a"), {});
  // b is there, and a does not know it yet.
  EXPECT_TRUE(world_->until(
      [&] { return b_.port->counters()["a"].failed_dials[static_cast<std::size_t>(BulkEnd::refused)] > 0; }));
  list(a_, {"b"});
  expect_exchange(a_, "a", b_, "b");
  EXPECT_THAT(b_.heard.resets("a", incoming), SizeIs(0)) << "no stream ended, since none stood";
}

TEST_P(BulkTest, AConnectionThatBreaksIsMadeAgainAndBothHearOfIt) {
  start_both();
  b_.heard.keep("a");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(deliver(a_, "b", {"before", {}}));
  ASSERT_TRUE(wait_count(b_, "a", 5));
  b_.heard.release("a", 0);
  ASSERT_TRUE(world_->until([&] { return a_.heard.acknowledged("b").size() == 1; }));
  world_->cut("a");
  ASSERT_TRUE(wait_reset(a_, "b", outgoing, BulkEnd::connection));
  ASSERT_TRUE(wait_reset(b_, "a", incoming, BulkEnd::connection));
  EXPECT_EQ(a_.heard.resets("b", outgoing).front().before, 6U) << "2 to 5 are lost, as far as a knows";
  // What is let go of now belongs to a stream that is gone.
  b_.heard.keep("a", false);
  b_.heard.release_all("a");
  EXPECT_EQ(deliver(a_, "b", {"after", {}}).number, 6U);
  ASSERT_TRUE(world_->until([&] { return a_.heard.acknowledged("b").size() == 2; }));
  EXPECT_THAT(a_.heard.acknowledged("b"), ElementsAre(1, 6));
  EXPECT_EQ(b_.heard.all().back().header, "after");
  EXPECT_EQ(a_.heard.opened("b", outgoing).size(), 2U);
  const BulkCounters::Flow flow = a_.port->counters()["b"].outgoing;
  EXPECT_EQ(flow.of(BulkEnd::connection), 1U);
  EXPECT_EQ(flow.waiting_messages, 0U);
}

TEST_P(BulkTest, WhatWasNotLetGoOfCountsForTheNextStreamToo) {
  const BulkLimits limits{.bytes = 1 * kMiB, .messages = 20, .message = 400 * kKiB};
  start_both({}, limits);
  b_.heard.keep("a");
  const BulkMessage message{"", {made_bytes(5, 300 * kKiB)}};
  for (int round = 0; round < 4; ++round) {
    while (a_.port->send("b", message)) {
    }
    ASSERT_TRUE(wait_count(b_, "a", 3)) << "three fit, whatever comes between";
    world_->cut("a");
    ASSERT_TRUE(world_->until(
        [&] { return a_.heard.opened("b", outgoing).size() == 2U + static_cast<unsigned>(round); }));
    EXPECT_EQ(a_.port->send("b", message).answer, BulkSent::Answer::no_credit);
  }
  EXPECT_EQ(b_.heard.held("a"), 3U);
  b_.heard.release("a");
  EXPECT_TRUE(deliver(a_, "b", message)) << "it is granted when it is let go";
  ASSERT_TRUE(wait_count(b_, "a", 4));
  EXPECT_EQ(a_.port->send("b", message).answer, BulkSent::Answer::no_credit);
  b_.heard.keep("a", false);
  b_.heard.release_all("a");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(deliver(a_, "b", message));
  ASSERT_TRUE(wait_count(b_, "a", 24));
  EXPECT_LE(b_.port->counters()["a"].incoming.most_waiting_bytes, limits.bytes);
  EXPECT_EQ(b_.port->counters()["a"].incoming.of(BulkEnd::credit), 0U);
}

TEST_P(BulkTest, APeerThatStartsAnewIsAnotherIncarnation) {
  start_both();
  ASSERT_TRUE(deliver(a_, "b", {"old", {}}));
  ASSERT_TRUE(wait_count(b_, "a", 1));
  b_.port.reset();
  ASSERT_TRUE(wait_reset(a_, "b", outgoing, BulkEnd::closed));
  ASSERT_TRUE(wait_reset(a_, "b", incoming, BulkEnd::closed));
  EXPECT_EQ(a_.port->send("b", {}).answer, BulkSent::Answer::no_stream);
  BulkOptions anew = options("b");
  anew.seed = 4711;
  start(b_, anew, {"a"});
  expect_exchange(a_, "a", b_, "b");
  for (const BulkDirection direction : {incoming, outgoing}) {
    const auto incarnations = a_.heard.opened("b", direction);
    ASSERT_EQ(incarnations.size(), 2U);
    EXPECT_NE(incarnations[0], incarnations[1]);
  }
}

TEST_P(BulkTest, AChangedByteIsNeverDelivered) {
  start_both();
  const Bytes right = made_bytes(6, 300 * kKiB);
  ASSERT_TRUE(deliver(a_, "b", {"right", {right}}));
  ASSERT_TRUE(wait_count(b_, "a", 1));
  world_->damage("a", 100 * kKiB);
  ASSERT_TRUE(deliver(a_, "b", {"wrong", {right}}));
  // What comes after it does not overtake it.
  while (a_.port->send("b", {"behind", {right}})) {
  }
  ASSERT_TRUE(world_->until([&] { return !b_.heard.resets("a", incoming).empty(); }));
  ASSERT_TRUE(world_->until([&] { return !a_.heard.resets("b", outgoing).empty(); }));
  // Over an encrypted connection, encryption notices.
  const bool connection = dynamic_cast<SocketWorld*>(world_.get()) != nullptr && world_->encrypted();
  const BulkEnd why = connection ? BulkEnd::connection : BulkEnd::checksum;
  EXPECT_EQ(b_.heard.resets("a", incoming).front().why, why);
  EXPECT_EQ(a_.heard.resets("b", outgoing).front().why, why);
  EXPECT_EQ(b_.heard.count("a"), 1U);
  expect_exchange(a_, "a", b_, "b");
  EXPECT_EQ(b_.port->counters()["a"].incoming.of(why), 1U);
  for (const Copied& each : b_.heard.all()) {
    EXPECT_NE(each.header, "wrong");
    EXPECT_NE(each.header, "behind");
  }
}

TEST_P(BulkTest, AChangedByteOfASmallMessageIsNeverDelivered) {
  start_both();
  for (std::size_t i = 1; i <= 10; ++i) {
    world_->damage("a", i * 700);
    ASSERT_TRUE(world_->until([&] {
      a_.port->send("b", {"header", {Bytes(std::string(7 * kKiB, 'x'))}});
      return b_.heard.resets("a", incoming).size() == i;
    }));
    ASSERT_TRUE(world_->until([&] {
      return a_.heard.opened("b", outgoing).size() == i + 1 && b_.heard.opened("a", incoming).size() == i + 1;
    }));
  }
  expect_exchange(a_, "a", b_, "b");
  for (const Copied& each : b_.heard.all()) {
    if (each.header != "header") continue;
    EXPECT_EQ(each.parts.front().text(), std::string(7 * kKiB, 'x'));
  }
}

TEST_P(BulkTest, WhoFallsSilentIsNoticed) {
  start_both();
  // Both directions have a wire of their own; this is the one from a to b.
  world_->stall("a", true);
  ASSERT_TRUE(wait_reset(b_, "a", incoming, BulkEnd::silence));
  ASSERT_TRUE(wait_reset(a_, "b", outgoing, BulkEnd::silence));
  EXPECT_EQ(a_.port->send("b", {}).answer, BulkSent::Answer::no_stream);
  world_->pass(300ms);
  world_->stall("a", false);
  expect_exchange(a_, "a", b_, "b");
}

TEST_P(BulkTest, AnIdleStreamStands) {
  start_both();
  world_->pass(4s);
  EXPECT_THAT(a_.heard.resets("b", outgoing), SizeIs(0));
  EXPECT_THAT(a_.heard.resets("b", incoming), SizeIs(0));
  expect_exchange(a_, "a", b_, "b");
}

TEST_P(BulkTest, ASlowPeerHoldsUpNoOther) {
  const BulkLimits limits{.bytes = kMiB, .messages = 8, .message = kMiB};
  start(a_, options("a"), {"b", "c"});
  start(b_, options("b", limits), {"a"});
  start(c_, options("c", limits), {"a"});
  ASSERT_TRUE(open(a_, "b") && open(a_, "c"));
  b_.heard.keep("a");
  const BulkMessage message{"", {made_bytes(7, 100 * kKiB)}};
  while (a_.port->send("b", message)) {
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(deliver(a_, "c", message));
  EXPECT_TRUE(wait_count(c_, "a", 100));
  EXPECT_EQ(b_.heard.count("a"), 8U);
  b_.heard.release("a");
  EXPECT_TRUE(deliver(a_, "b", message));
}

TEST_P(BulkTest, WhoIsTakenOffTheListIsCutOffAndNobodyElse) {
  start(a_, options("a"), {"b", "c"});
  start(b_, options("b"), {"a"});
  start(c_, options("c"), {"a"});
  ASSERT_TRUE(open(a_, "b") && open(a_, "c"));
  list(a_, {"c"});
  EXPECT_EQ(a_.port->send("b", {}).answer, BulkSent::Answer::unknown_peer);
  EXPECT_TRUE(wait_reset(a_, "b", outgoing, BulkEnd::unlisted));
  EXPECT_TRUE(wait_reset(b_, "a", incoming, BulkEnd::unlisted));
  EXPECT_TRUE(wait_reset(b_, "a", outgoing, BulkEnd::unlisted));
  EXPECT_FALSE(a_.port->counters().contains("b"));
  expect_exchange(a_, "a", c_, "c");
  EXPECT_THAT(a_.heard.resets("c", outgoing), SizeIs(0));
  list(a_, {"b", "c"});
  expect_exchange(a_, "a", b_, "b");
}

TEST_P(BulkTest, WhoeverMakesNoSenseIsLeftOutOfAListAndNobodyElse) {
  start_both();
  const BulkPeer b = world_->peer("b");
  const std::string at = b.endpoint;
  const std::string long_name(256, 'x');
  std::vector<BulkPeer> listed = {
      {"", at, b.keys}, {long_name, at, b.keys}, {"two\nlines", at, b.keys}, b, b};
  std::vector<std::string> left_out = {"", long_name.substr(1), base::one_line("two\nlines"), "b"};
  if (world_->encrypted()) {
    // Before it in the list, and new there.
    BulkPeer thief = world_->peer("a");
    thief.name = "a thief";
    thief.keys = b.keys;
    listed.insert(listed.begin(), thief);
    left_out.push_back("a thief");
    BulkPeer twice = world_->peer("c");
    twice.keys.push_back(twice.keys.front());
    listed.push_back(twice);
    left_out.push_back("c");
    listed.push_back({"bare", at, {}});
    left_out.push_back("bare");
  } else {
    listed.push_back({"keyed", at, {make_key_pair().public_key}});
    left_out.push_back("keyed");
  }
  std::vector<std::string> names;
  for (const BulkRefusal& each : a_.port->set_peers(listed)) {
    names.push_back(each.peer);
    EXPECT_FALSE(each.why.empty());
    EXPECT_EQ(base::one_line(each.why), each.why);
  }
  EXPECT_THAT(names, UnorderedElementsAreArray(left_out));
  expect_exchange(a_, "a", b_, "b");
  EXPECT_THAT(a_.heard.resets("b", outgoing), SizeIs(0));
  EXPECT_THAT(a_.heard.resets("b", incoming), SizeIs(0));
  EXPECT_THAT(a_.port->counters(), SizeIs(1));
}

TEST_P(BulkTest, OptionsThatContradictEachOtherAreRefused) {
  Heard heard;
  std::vector<BulkOptions> bad(6, options("x"));
  bad[0].name = "";
  bad[1].limits.message = bad[1].limits.bytes + 1;
  bad[2].limits.header = bad[2].limits.message + 1;
  bad[3].limits.messages = 0;
  bad[4].silence = bad[4].heartbeat;
  bad[5].longest_pause = 1ms;
  for (const BulkOptions& each : bad) EXPECT_THROW(world_->port(each, heard), BulkError);
}

TEST_P(BulkTest, AReceiptOutlivesItsPort) {
  start_both();
  b_.heard.keep("a");
  ASSERT_TRUE(deliver(a_, "b", {"kept", {made_bytes(8, 50 * kKiB)}}));
  ASSERT_TRUE(wait_count(b_, "a", 1));
  b_.port.reset();
  EXPECT_TRUE(b_.heard.all().front().parts.front().text() == made_bytes(8, 50 * kKiB).text());
  b_.heard.release_all("a");
}

INSTANTIATE_TEST_SUITE_P(All, BulkTest,
                         ::testing::Values(kPlainSockets, kCurveSockets, kPlainMemory, kKeysMemory),
                         name_of_kind);
}  // namespace
}  // namespace vigil::cluster
