// Whoever is not a port as it should be, over real sockets: it is cut off, and the others are served.
#include <csignal>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <zmq.hpp>
#include <zmq_addon.hpp>

#include "cluster/bulk/frames.h"
#include "cluster/bulk/socket_bulk.h"
#include "cluster/bulk/wire.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "tests/cluster/bulk/heard.h"
#include "tests/cluster/sockets/raw_peer.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using enum BulkDirection;

constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kMiB = 1 << 20;

BulkOptions options(const std::string& name, BulkLimits limits = {}) {
  return {.name = name,
          .limits = limits,
          .heartbeat = 100ms,
          .silence = 1500ms,
          .handshake = 1500ms,
          .first_pause = 10ms,
          .longest_pause = 100ms};
}

bool until(const std::function<bool()>& holds) {
  const Heard nobody;
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    nobody.wait_a_moment();
  }
  return true;
}

struct Node {
  explicit Node(const std::string& name, BulkLimits limits = {}, SocketBulkOptions sockets = {})
      : port(options(name, limits),
             (sockets.endpoint = sockets.endpoint.empty() ? "tcp://127.0.0.1:0" : sockets.endpoint, sockets),
             heard, clock) {}

  SystemClock clock;
  Heard heard;
  SocketBulk port;
};

/// Whether a message goes from one to the other, within the time that a test waits.
void expect_served(Node& from, Node& to, const std::string& from_name, const std::string& to_name) {
  const std::size_t before = to.heard.count(from_name);
  EXPECT_TRUE(until([&] { return bool(from.port.send(to_name, {"served", {made_bytes(1, 100 * kKiB)}})); }));
  EXPECT_TRUE(until([&] { return to.heard.count(from_name) > before; }));
}

/// A sender of the protocol that does what a test wants; the receiver dials it.
class RawSender {
 public:
  RawSender() : socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.bind("tcp://127.0.0.1:*");
  }
  BulkPeer peer(const std::string& name) const { return {name, socket_.get(zmq::sockopt::last_endpoint)}; }

  /// Waits for a receiver.
  BulkHello hear_hello() {
    const auto parcel = hear();
    return parcel && std::holds_alternative<BulkHello>(*parcel) ? std::get<BulkHello>(*parcel) : BulkHello{};
  }
  std::optional<BulkParcel> hear() {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts)) || parts.size() != 2) return std::nullopt;
    receiver_ = parts[0].to_string();
    parts.erase(parts.begin());
    auto decoded = decode(frames_of(std::move(parts)), {}, false);
    if (auto* parcel = std::get_if<BulkParcel>(&decoded)) return std::move(*parcel);
    return std::nullopt;
  }
  /// What the receiver says at last.
  std::optional<BulkEnd> hear_bye() {
    while (const auto parcel = hear()) {
      if (const auto* bye = std::get_if<BulkBye>(&*parcel)) return bye->why;
    }
    return std::nullopt;
  }
  void say(const Frames& frames) {
    socket_.send(zmq::buffer(receiver_), zmq::send_flags::sndmore);
    send_frames(socket_, frames);
  }
  void send(std::uint64_t number, const BulkMessage& message, bool checksums = true) {
    std::size_t begin = 0;
    say(encode_together({{number, message}}, begin, checksums));
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string receiver_;
};

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

/// A receiver that does what a test wants.
class RawReceiver {
 public:
  explicit RawReceiver(const std::string& endpoint) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.connect(endpoint);
  }
  void say(const Frames& frames) { send_frames(socket_, frames); }
  std::optional<BulkParcel> hear() {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts))) return std::nullopt;
    auto decoded = decode(frames_of(std::move(parts)), {}, false);
    if (auto* parcel = std::get_if<BulkParcel>(&decoded)) return std::move(*parcel);
    return std::nullopt;
  }
  std::optional<BulkEnd> hear_bye() {
    while (const auto parcel = hear()) {
      if (const auto* bye = std::get_if<BulkBye>(&*parcel)) return bye->why;
    }
    return std::nullopt;
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

BulkHello hello(const std::string& from) {
  return {.from = from, .to = "a", .incarnation = 5, .grant = {10 * kMiB, 10}, .limits = {}};
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
  EXPECT_THROW(a.port.set_peers({{"b", "tcp://192.0.2.1:7"}}), BulkError);
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

TEST(SocketBulkTest, ManyPeersThatSayNothingAndOneWithoutAKeyEndNothing) {
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

  const KeyPair keys = make_key_pair();
  Node c("c", {}, {.endpoint = "", .keys = keys});
  c.port.set_peers({{"b", "tcp://127.0.0.1:1", {"abc"}}});
  EXPECT_TRUE(until([&] { return c.port.counters()["b"].dials > 1; }));
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
