// Whoever is not a port as it should be, over real sockets: it is cut off, and the others are served.
#include <csignal>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "cluster/process/process.h"
#include "tests/cluster/bulk/rude.h"
#include "tests/cluster/sockets/raw_peer.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using enum BulkDirection;

class RudeSenderTest : public ::testing::Test {
 protected:
  void meet(BulkLimits limits) {
    node_.emplace("b", limits);
    node_->port.set_peers({rude_.peer("a")});
    const BulkHello hello = rude_.hear_hello();
    ASSERT_EQ(hello.from, "b");
    ASSERT_EQ(hello.to, "a");
    EXPECT_EQ(hello.grant.bytes, limits.bytes);
    EXPECT_EQ(hello.grant.messages, limits.messages);
    rude_.say(encode(BulkWelcome{.incarnation = 1, .number = 1}));
    ASSERT_TRUE(until([&] { return node_->port.counters()["a"].incoming.open; }));
  }
  void expect_cut(BulkEnd why, std::size_t delivered) {
    ASSERT_TRUE(until([&] { return !node_->heard.resets("a", incoming).empty(); }));
    EXPECT_EQ(name_of(node_->heard.resets("a", incoming).front().why), name_of(why));
    EXPECT_EQ(node_->heard.count("a"), delivered);
    EXPECT_EQ(rude_.hear_bye(), why);
    // It may try again.
    EXPECT_EQ(rude_.hear_hello().from, "b");
  }

  RawSender rude_;
  std::optional<Node> node_;
};

TEST_F(RudeSenderTest, WhoIgnoresTheBytesThatWereGrantedIsCutOff) {
  meet({.bytes = 400 * kKiB, .messages = 100, .message = 200 * kKiB});
  node_->heard.keep("a");
  for (std::uint64_t i = 1; i <= 3; ++i) rude_.send(i, {"", {made_bytes(i, 150 * kKiB)}});
  expect_cut(BulkEnd::credit, 2);
  EXPECT_LE(node_->port.counters()["a"].incoming.most_waiting_bytes, 400 * kKiB);
}

TEST_F(RudeSenderTest, WhoIgnoresTheMessagesThatWereGrantedIsCutOff) {
  meet({.bytes = 400 * kKiB, .messages = 5, .message = 200 * kKiB});
  node_->heard.keep("a");
  for (std::uint64_t i = 1; i <= 20; ++i) rude_.send(i, {"", {}});
  expect_cut(BulkEnd::credit, 5);
}

TEST_F(RudeSenderTest, AFloodStaysOutOfMemory) {
  meet({.bytes = 4 * kMiB, .messages = 8, .message = 4 * kMiB});
  node_->heard.keep("a");
  const std::uint64_t before = process_memory().resident_bytes;
  const Bytes part = made_bytes(1, 1 * kMiB);
  for (std::uint64_t i = 1; i <= 500; ++i) rude_.send(i, {"", {part}});
  expect_cut(BulkEnd::credit, 4);
  EXPECT_LT(process_memory().resident_bytes, before + 64 * kMiB);
}

TEST_F(RudeSenderTest, AMessageThatIsTooLargeIsNotTaken) {
  meet({.bytes = kMiB, .messages = 100, .message = 100 * kKiB, .header = 10, .parts = 2});
  rude_.send(1, {"", {made_bytes(1, 100 * kKiB)}});
  rude_.send(2, {"", {made_bytes(1, 60 * kKiB), made_bytes(1, 60 * kKiB)}});
  expect_cut(BulkEnd::limits, 1);
}

TEST_F(RudeSenderTest, AFrameThatIsTooLargeEndsTheConnection) {
  meet({.bytes = kMiB, .messages = 100, .message = 100 * kKiB, .header = 10, .parts = 2});
  rude_.send(1, {"", {made_bytes(1, 300 * kKiB)}});
  ASSERT_TRUE(until([&] { return !node_->heard.resets("a", incoming).empty(); }));
  EXPECT_EQ(node_->heard.count("a"), 0U);
  EXPECT_EQ(rude_.hear_hello().from, "b");
}

TEST_F(RudeSenderTest, AGapInTheOrderEndsTheStream) {
  meet({});
  rude_.send(1, {"one", {}});
  rude_.send(3, {"three", {}});
  expect_cut(BulkEnd::protocol, 1);
}

TEST_F(RudeSenderTest, WhoSavesTheSumsIsNotHeard) {
  meet({});
  rude_.send(1, {"", {made_bytes(1, 100 * kKiB)}}, false);
  expect_cut(BulkEnd::protocol, 0);
}

TEST_F(RudeSenderTest, GarbageEndsTheStream) {
  meet({});
  rude_.say({made_bytes(5, 1000)});
  expect_cut(BulkEnd::checksum, 0);
}

TEST(RudeReceiverTest, WhoAcknowledgesWhatWasNotSentIsCutOff) {
  Node a("a");
  a.port.set_peers({{"b", "tcp://127.0.0.1:1"}});
  for (const std::vector<std::uint64_t>& numbers :
       {std::vector<std::uint64_t>{1, 1}, {2, 2}, {3}, {0}, {~0ULL}}) {
    const std::size_t before = a.heard.resets("b", outgoing).size();
    const std::uint64_t handed_over = a.port.counters()["b"].outgoing.messages;
    RawReceiver rude(a.port.endpoint());
    rude.say(encode(hello("b")));
    ASSERT_TRUE(until([&] { return a.heard.opened("b", outgoing).size() == before + 1; }));
    const BulkSent sent = a.port.send("b", {"one", {}});
    ASSERT_TRUE(sent && a.port.send("b", {"two", {}}));
    ASSERT_TRUE(until([&] { return a.port.counters()["b"].outgoing.messages == handed_over + 2; }));
    std::vector<std::uint64_t> shifted = numbers;
    for (std::uint64_t& each : shifted) each += sent.number - 1;
    rude.say(encode(BulkCredit{shifted, {}}));
    EXPECT_EQ(rude.hear_bye(), BulkEnd::protocol);
    ASSERT_TRUE(until([&] { return a.heard.resets("b", outgoing).size() == before + 1; }));
    EXPECT_EQ(a.heard.resets("b", outgoing).back().why, BulkEnd::protocol);
  }
}

TEST(RudeReceiverTest, WhoIsUnknownOrMeansAnotherIsToldSo) {
  Node a("a");
  a.port.set_peers({{"b", "tcp://127.0.0.1:1"}});
  RawReceiver stranger(a.port.endpoint());
  stranger.say(encode(hello("x")));
  EXPECT_EQ(stranger.hear_bye(), BulkEnd::refused);
  RawReceiver astray(a.port.endpoint());
  BulkHello meant = hello("b");
  meant.to = "c";
  astray.say(encode(meant));
  EXPECT_EQ(astray.hear_bye(), BulkEnd::refused);
  RawReceiver early(a.port.endpoint());
  early.say(encode(BulkAlive{}));
  EXPECT_EQ(early.hear_bye(), BulkEnd::protocol);
  EXPECT_THAT(a.heard.opened("b", outgoing), SizeIs(0));
  // They are closed, whether they go or not.
  EXPECT_TRUE(until([&] { return a.port.strangers().connections == 0; }));
}

TEST(RudeReceiverTest, ASecondConnectionOfAPeerTakesTheFirstOnesPlace) {
  Node a("a");
  a.port.set_peers({{"b", "tcp://127.0.0.1:1"}});
  RawReceiver first(a.port.endpoint());
  first.say(encode(hello("b")));
  ASSERT_TRUE(until([&] { return a.heard.opened("b", outgoing).size() == 1; }));
  RawReceiver second(a.port.endpoint());
  second.say(encode(hello("b")));
  EXPECT_EQ(first.hear_bye(), BulkEnd::superseded);
  ASSERT_TRUE(until([&] { return a.heard.opened("b", outgoing).size() == 2; }));
  EXPECT_EQ(a.heard.resets("b", outgoing).front().why, BulkEnd::superseded);
  ASSERT_TRUE(a.port.send("b", {"for the second", {}}));
  std::optional<BulkParcel> heard;
  while ((heard = second.hear()) && !std::holds_alternative<BulkData>(*heard)) {
  }
  EXPECT_TRUE(heard.has_value());
}

class StrangersTest : public ::testing::TestWithParam<bool> {
 protected:
  StrangersTest() : a_("a", {}, sockets(a_keys_)), b_("b", {}, sockets(b_keys_)) {
    a_.port.set_peers({peer("b", b_, b_keys_)});
    b_.port.set_peers({peer("a", a_, a_keys_)});
    expect_served(a_, b_, "a", "b");
  }
  static SocketBulkOptions sockets(const KeyPair& keys) {
    SocketBulkOptions result{.endpoint = "tcp://127.0.0.1:0", .connections = 20};
    if (GetParam()) result.keys = keys;
    return result;
  }
  static BulkPeer peer(const std::string& name, const Node& node, const KeyPair& keys) {
    return {name, node.port.endpoint(),
            GetParam() ? std::vector{keys.public_key} : std::vector<std::string>()};
  }
  void expect_undisturbed() {
    expect_served(a_, b_, "a", "b");
    expect_served(b_, a_, "b", "a");
    EXPECT_THAT(a_.heard.resets("b", outgoing), SizeIs(0));
    EXPECT_THAT(b_.heard.resets("a", outgoing), SizeIs(0));
  }

  KeyPair a_keys_ = make_key_pair();
  KeyPair b_keys_ = make_key_pair();
  Node a_;
  Node b_;
};

TEST_P(StrangersTest, GarbageAndHalfAHandshakeLeaveItServing) {
  const std::string greeting = zmtp_greeting(GetParam() ? "CURVE" : "NULL");
  std::vector<RawPeer> strangers;
  for (const std::string& text :
       {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1000, '\0'),
        std::string(5000, '\xff'), greeting.substr(0, 7), greeting,
        greeting + zmtp_ready("DEALER").substr(0, 9), greeting + zmtp_frame(std::string(100'000, 'x'))}) {
    strangers.emplace_back(a_.port.endpoint());
    strangers.back().send(text);
  }
  expect_undisturbed();
  for (const RawPeer& each : strangers) EXPECT_TRUE(each.closes());
  EXPECT_TRUE(until([&] { return a_.port.strangers().connections == 1; })) << "the one of b";
}

TEST_P(StrangersTest, ConnectionsThatSayNothingDisplaceEachOther) {
  std::vector<RawPeer> silent;
  for (int i = 0; i < 200; ++i) silent.emplace_back(a_.port.endpoint());
  EXPECT_TRUE(until([&] { return a_.port.strangers().displaced >= 200 - 19; }));
  expect_undisturbed();
  EXPECT_TRUE(until([&] { return a_.port.strangers().connections == 1; })) << "those that were left expire";
}

TEST_P(StrangersTest, ThoseWhoGreetAndSayNothingGoToo) {
  if (GetParam()) GTEST_SKIP() << "without a key there is no greeting";
  RawPeer stranger(a_.port.endpoint());
  ASSERT_TRUE(stranger.shake_hands("DEALER"));
  EXPECT_TRUE(stranger.closes());
  EXPECT_TRUE(until([&] { return a_.port.strangers().expired == 1; }));
  RawPeer large(a_.port.endpoint());
  ASSERT_TRUE(large.shake_hands("DEALER"));
  large.send(zmtp_frame(std::string(20'000, 'x')));
  EXPECT_TRUE(large.closes());
  expect_undisturbed();
}

INSTANTIATE_TEST_SUITE_P(All, StrangersTest, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "curve" : "plain"; });

TEST(SocketBulkTest, PlainTextIsForLoopbackUnlessTheOptionsSaySo) {
  SystemClock clock;
  Heard heard;
  const auto make = [&](SocketBulkOptions sockets) { SocketBulk port(options("a"), sockets, heard, clock); };
  EXPECT_THROW(make({.endpoint = "tcp://0.0.0.0:0"}), BulkError);
  EXPECT_NO_THROW(make({.endpoint = "tcp://0.0.0.0:0", .plain_text_beyond_loopback = true}));
  EXPECT_NO_THROW(make({.endpoint = "tcp://0.0.0.0:0", .keys = make_key_pair()}));
  EXPECT_NO_THROW(make({.endpoint = "tcp://127.0.0.2:0"}));
  Node a("a");
  EXPECT_THAT(a.port.set_peers({{"b", "tcp://192.0.2.1:7"}}),
              ElementsAre(BulkRefusal{"b",
                                      "tcp://192.0.2.1:7: plain text is for loopback alone, unless the "
                                      "configuration says otherwise"}));
  EXPECT_THROW(a.port.set_keys(make_key_pair()), BulkError);
}

TEST(SocketBulkTest, EndpointsThatMakeNoSenseAreRefused) {
  SystemClock clock;
  Heard heard;
  const Node taken("a");
  for (const std::string& endpoint :
       {std::string(), std::string("127.0.0.1:5"), std::string("ipc:///tmp/x"),
        std::string("tcp://127.0.0.1"), std::string("tcp://nowhere.invalid:1"), taken.port.endpoint()}) {
    EXPECT_THROW(SocketBulk(options("x"), {.endpoint = endpoint}, heard, clock), BulkError) << endpoint;
  }
}

TEST(SocketBulkTest, ManyPeersThatSayNothingEndNothing) {
  // All are dialed at once; nobody answers.
  const RawSender mute;
  Node a("a");
  std::vector<BulkPeer> many;
  for (int i = 0; i < 400; ++i) many.push_back(mute.peer("b" + std::to_string(i)));
  a.port.set_peers(many);
  EXPECT_TRUE(until([&] {
    const auto counters = a.port.counters();
    return std::all_of(counters.begin(), counters.end(),
                       [](const auto& each) { return each.second.dials > 0; });
  }));
  for (const auto& [name, counters] : a.port.counters())
    EXPECT_EQ(counters.failed_dials.at(static_cast<std::size_t>(BulkEnd::connection)), 0U) << name;
}

TEST(SocketBulkTest, OneThatMakesNoSenseKeepsNoOtherOffTheList) {
  const KeyPair a_keys = make_key_pair();
  const KeyPair b_keys = make_key_pair();
  Node a("a", {}, {.endpoint = "", .keys = a_keys});
  Node b("b", {}, {.endpoint = "", .keys = b_keys});
  const std::string key = make_key_pair().public_key;
  const auto refused = a.port.set_peers({{"bad key", b.port.endpoint(), {"abc"}},
                                         {"line", b.port.endpoint(), {std::string(39, 'a') + '\n'}},
                                         {"name", "tcp://nowhere.invalid:1", {key}},
                                         {"no port", "tcp://127.0.0.1", {key}},
                                         {"no\nname", b.port.endpoint(), {key}},
                                         {"no key", b.port.endpoint(), {}},
                                         {"b", b.port.endpoint(), {b_keys.public_key}}});
  std::vector<std::string> names;
  for (const BulkRefusal& each : refused) {
    names.push_back(each.peer);
    EXPECT_EQ(each.why.find('\n'), std::string::npos) << each.why;
    EXPECT_EQ(each.why.find("abc"), std::string::npos) << each.why;
    EXPECT_FALSE(each.why.empty());
  }
  EXPECT_THAT(names, UnorderedElementsAre("bad key", "line", "name", "no port", HasSubstr("no"), "no key"));
  EXPECT_THAT(b.port.set_peers({{"a", a.port.endpoint(), {a_keys.public_key}}}), SizeIs(0));
  expect_served(a, b, "a", "b");
}

TEST(SocketBulkTest, ItEndsQuicklyWhatevertheOthersDo) {
  // One listens and never answers, one is not there, one takes a message and hangs.
  const RawSender mute;
  auto a = std::make_unique<Node>("a");
  a->port.set_peers({{"b", mute.peer("b").endpoint}, {"c", "tcp://127.0.0.1:1"}});
  RawReceiver hanging(a->port.endpoint());
  hanging.say(encode(hello("b")));
  ASSERT_TRUE(until([&] { return bool(a->port.send("b", {"", {made_bytes(1, 8 * kMiB)}})); }));
  const auto begin = std::chrono::steady_clock::now();
  a.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
}

TEST(SocketBulkTest, AProcessThatIsKilledIsNoticedAndItsSuccessorTakenUp) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets no child have threads";
#endif
  Node a("a");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto start = [&] {
    const pid_t child = ::fork();
    if (child != 0) return child;
    // In the child: the parent's objects are left alone.
    auto* b = new Node("b");
    b->port.set_peers({{"a", a.port.endpoint()}});
    const std::string text = b->port.endpoint() + '\n';
    if (::write(ends[1], text.data(), text.size()) < 0) ::_exit(1);
    for (;;) {
      b->port.send("a", {"from the child", {made_bytes(1, 50 * kKiB)}});
      b->heard.wait_a_moment();
    }
  };
  const auto line = [&] {
    std::string text;
    for (char byte = 0; ::read(ends[0], &byte, 1) == 1 && byte != '\n';) text += byte;
    return text;
  };
  for (std::size_t round = 1; round <= 2; ++round) {
    const pid_t child = start();
    a.port.set_peers({{"b", line()}});
    const std::size_t before = a.heard.count("b");
    EXPECT_TRUE(until([&] { return a.heard.count("b") >= before + 3; }));
    EXPECT_TRUE(until([&] { return a.heard.opened("b", outgoing).size() == round; }));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(until([&] {
      return a.heard.resets("b", incoming).size() == round && a.heard.resets("b", outgoing).size() == round;
    }));
    EXPECT_EQ(a.heard.resets("b", incoming).back().why, BulkEnd::connection);
    EXPECT_EQ(a.heard.resets("b", outgoing).back().why, BulkEnd::connection);
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace vigil::cluster
