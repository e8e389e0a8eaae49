// The framing as ZeroMQ itself writes it, and as it should not be.
#include "cluster/sockets/zmtp.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zmq.hpp>

#include "cluster/sockets/peer_account.h"
#include "cluster/topics/topics.h"
#include "tests/cluster/sockets/raw_peer.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using base::Clock;
using ::testing::ElementsAre;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// "size flags head" of each frame, and how the reading ended if it did not end well.
std::vector<std::string> frames_of(const std::string& text, std::size_t piece,
                                   std::uint64_t largest = 1 << 20) {
  ZmtpReader reader(largest);
  std::vector<std::string> frames;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string part = text.substr(at, piece);
    std::span<const std::byte> rest = bytes_of(part);
    ZmtpFrame frame;
    for (ZmtpReader::Result result{}; (result = reader.next(rest, frame)) != ZmtpReader::Result::more;) {
      if (result == ZmtpReader::Result::foreign) return frames.emplace_back("foreign"), frames;
      if (result == ZmtpReader::Result::too_large) return frames.emplace_back("too large"), frames;
      frames.push_back(std::to_string(frame.size) + (frame.command ? " command " : " ") +
                       (frame.more ? "more " : "") + std::string(frame.head));
    }
    EXPECT_TRUE(rest.empty());
  }
  return frames;
}

TEST(Zmtp, FramesAreReadHoweverTheyAreCut) {
  const std::string text = zmtp_greeting() + zmtp_frame("\4PING12", 4) + zmtp_frame("", 1) +
                           zmtp_frame(std::string(300, 'x')) + zmtp_frame("tail");
  for (const std::size_t piece : {1UL, 2UL, 3UL, 7UL, 64UL, 65UL, 1000UL}) {
    EXPECT_THAT(frames_of(text, piece),
                ElementsAre("7 command \4PING12", "0 more ", "300 xxxxxxxxxx", "4 tail"))
        << piece;
  }
}

TEST(Zmtp, WhatIsNoZmtp3IsForeign) {
  EXPECT_THAT(frames_of("GET / HTTP/1.1\r\n", 3), ElementsAre("foreign"));
  EXPECT_THAT(frames_of(std::string("\xff\0\0\0\0\0\0\0\1\x7f\1\0", 12), 1), ElementsAre("foreign"))
      << "ZMTP 2";
  EXPECT_THAT(frames_of(std::string("\xff\0\0\0\0\0\0\0\1\0\3\0", 12), 1), ElementsAre("foreign"));
  EXPECT_THAT(frames_of(zmtp_greeting() + '\x08', 1), ElementsAre("foreign")) << "a flag that there is not";
}

TEST(Zmtp, AFrameIsTooLargeBeforeItsBodyComes) {
  const std::string claims = zmtp_greeting() + std::string("\2\xff\xff\xff\xff\xff\xff\xff\xff", 9);
  EXPECT_THAT(frames_of(claims, 1), ElementsAre("too large"));
  EXPECT_THAT(frames_of(zmtp_greeting() + zmtp_frame(std::string(11, 'x')), 100, 10),
              ElementsAre("too large"));
  EXPECT_THAT(frames_of(zmtp_greeting() + zmtp_frame(std::string(10, 'x')), 100, 10),
              ElementsAre("10 xxxxxxxxxx"));
}

TEST(Zmtp, RandomBytesEndSomewhere) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text = zmtp_greeting();
    for (std::size_t n = random() % 400; n > 0; --n) text += static_cast<char>(random());
    EXPECT_EQ(frames_of(text, 1), frames_of(text, 1 + random() % 50)) << i;
  }
}

/// ZeroMQ's own bytes are the reference: what its sockets send is read as what they were told to send.
TEST(Zmtp, ReadsWhatZeroMqWrites) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  zmq::context_t context;
  zmq::socket_t dealer(context, zmq::socket_type::dealer);
  dealer.set(zmq::sockopt::linger, 0);
  dealer.connect("tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  const std::string large(70'000, 'y');
  dealer.send(zmq::str_buffer("tag"), zmq::send_flags::sndmore);
  dealer.send(zmq::buffer(large), zmq::send_flags::none);
  const int connection = ::accept(listener, nullptr, nullptr);
  const std::string own = zmtp_greeting() + zmtp_ready("ROUTER");
  ASSERT_EQ(::send(connection, own.data(), own.size(), MSG_NOSIGNAL), static_cast<ssize_t>(own.size()));
  std::string seen;
  while (seen.size() < large.size() || !seen.ends_with('y')) {
    std::string text(1 << 16, '\0');
    const ssize_t count = ::recv(connection, text.data(), text.size(), 0);
    ASSERT_GT(count, 0);
    seen.append(text, 0, static_cast<std::size_t>(count));
    if (seen.size() >= large.size() + 64 + 3 + 9) break;
  }
  ::close(connection);
  ::close(listener);
  const auto frames = frames_of(seen, 1000);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_NE(frames[0].find(" command \5READY"), std::string::npos) << frames[0];
  EXPECT_EQ(frames[1], "3 more tag");
  EXPECT_EQ(frames[2], "70000 yyyyyyyyyy");
}

class PeerAccountTest : public ::testing::Test {
 protected:
  std::optional<Refusal> send(PeerAccount& account, const std::string& text) {
    return account.from_client(bytes_of(text), now_);
  }
  PeerAccount account(PeerLimits limits) {
    PeerAccount result(limits, now_);
    EXPECT_EQ(send(result, zmtp_greeting()), std::nullopt);
    return result;
  }
  Clock::TimePoint now_{1h};
};

TEST_F(PeerAccountTest, BothSidesAreAcquaintedWhenBothSaidSo) {
  PeerAccount peer = account({});
  EXPECT_FALSE(peer.acquainted());
  EXPECT_EQ(send(peer, zmtp_ready("SUB")), std::nullopt);
  EXPECT_FALSE(peer.acquainted());
  const std::string server = zmtp_greeting() + zmtp_ready("XPUB");
  peer.from_server(bytes_of(server));
  EXPECT_TRUE(peer.acquainted());
}

TEST_F(PeerAccountTest, TheAllowanceIsForFramesAndShortOnesCostMore) {
  PeerLimits limits;
  limits.least_cost = 100;
  limits.allowance = 1000;
  PeerAccount peer = account(limits);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(send(peer, zmtp_frame("\1a")), std::nullopt) << i;
  EXPECT_EQ(send(peer, zmtp_frame("\1a")), Refusal::allowance);
  PeerAccount other = account(limits);
  EXPECT_EQ(send(other, zmtp_frame(std::string(900, 'x'))), std::nullopt);
  EXPECT_EQ(send(other, zmtp_frame(std::string(101, 'x'))), Refusal::allowance);
}

TEST_F(PeerAccountTest, HeartbeatsAreFreeForEver) {
  PeerLimits limits;
  limits.allowance = 500;
  PeerAccount peer = account(limits);
  for (int i = 0; i < 100'000; ++i) {
    now_ += 1s;
    ASSERT_EQ(send(peer, zmtp_frame(std::string("\4PING\0\1", 7), 4)), std::nullopt);
    ASSERT_EQ(send(peer, zmtp_frame("\4PONG", 4)), std::nullopt);
    ASSERT_LE(peer.wait(), 0ms);
  }
  EXPECT_EQ(send(peer, zmtp_frame("\4PING" + std::string(600, 'x'), 4)), Refusal::allowance)
      << "one that is none";
}

// Which cannot be told from subscriptions.
TEST_F(PeerAccountTest, OfEncryptedFramesARateIsFreeForEver) {
  PeerLimits limits;
  limits.allowance = 1000;
  limits.recovery = 64;
  limits.encrypted = true;
  const std::string heartbeat = zmtp_frame(std::string(40, 'e'));
  PeerAccount peer = account(limits);
  for (int i = 0; i < 100'000; ++i) {
    now_ += 1s;
    ASSERT_EQ(send(peer, heartbeat), std::nullopt) << i;
  }
  now_ += 1s;
  int sent = 0;
  while (send(peer, heartbeat) == std::nullopt) ++sent;
  EXPECT_EQ(sent, 1000 / 64);
}

TEST_F(PeerAccountTest, AnEncryptedSubscriberMayBeatForDaysAndNotFlood) {
  const PeerLimits limits = TopicPublisher::limits(/*encrypted=*/true);
  const std::string heartbeat = zmtp_frame(std::string(40, 'e'));
  PeerAccount quiet = account(limits);
  // Its own, and answers to the publisher's.
  for (int second = 0; second < 7 * 24 * 3600; second += 5) {
    ASSERT_EQ(send(quiet, heartbeat + heartbeat), std::nullopt) << second;
    now_ += 5s;
  }
  PeerAccount flood = account(limits);
  int sent = 0;
  while (send(flood, heartbeat) == std::nullopt) ++sent;
  EXPECT_EQ(sent, (16 << 10) / 64);
  PeerAccount drip = account(limits);
  int seconds = 0;
  for (; seconds < 3600 && send(drip, heartbeat + heartbeat) == std::nullopt; ++seconds) now_ += 1s;
  EXPECT_LT(seconds, 300) << "twice of what is free";
}

TEST_F(PeerAccountTest, AnAnswerRestoresTheAllowanceAndAHeartbeatDoesNot) {
  PeerLimits limits;
  limits.frame = 1000;
  limits.parts = 8;
  limits.allowance = 1500;
  limits.answers_restore = true;
  PeerAccount peer = account(limits);
  const std::string server = zmtp_greeting() + zmtp_ready("ROUTER");
  peer.from_server(bytes_of(server));
  EXPECT_EQ(send(peer, zmtp_ready("DEALER")), std::nullopt);
  const std::string answer = zmtp_frame("1", 1) + zmtp_frame(std::string(80, 'a'));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(send(peer, zmtp_frame(std::string(1000, 'q'))), std::nullopt) << i;
    peer.from_server(bytes_of(answer));
  }
  const std::string pong = zmtp_frame("\4PONG", 4);
  peer.from_server(bytes_of(pong));
  EXPECT_EQ(send(peer, zmtp_frame(std::string(1000, 'q'))), std::nullopt);
  peer.from_server(bytes_of(pong));
  EXPECT_EQ(send(peer, zmtp_frame(std::string(1000, 'q'))), Refusal::allowance);
}

TEST_F(PeerAccountTest, WhoSendsTooFastWaits) {
  PeerLimits limits;
  limits.allowance = 1e9;
  limits.burst = 1000;
  limits.per_second = 100;
  PeerAccount peer = account(limits);
  EXPECT_EQ(send(peer, zmtp_frame(std::string(1000, 'x'))), std::nullopt);
  EXPECT_LE(peer.wait(), 0ms);
  EXPECT_EQ(send(peer, zmtp_frame(std::string(200, 'x'))), std::nullopt);
  EXPECT_EQ(peer.wait(), 2s);
  now_ += 5s;
  EXPECT_EQ(send(peer, ""), std::nullopt);
  EXPECT_LE(peer.wait(), 0ms);
}

TEST_F(PeerAccountTest, AMessageHasSoManyParts) {
  PeerLimits limits;
  limits.parts = 3;
  PeerAccount peer = account(limits);
  const std::string request = zmtp_frame("", 1) + zmtp_frame("tag", 1) + zmtp_frame("query");
  EXPECT_EQ(send(peer, request + request), std::nullopt);
  EXPECT_EQ(send(peer, zmtp_frame("", 1) + zmtp_frame("", 1)), std::nullopt);
  EXPECT_EQ(send(peer, zmtp_frame("", 1)), Refusal::message_parts);
}

// ZeroMQ takes them there.
TEST_F(PeerAccountTest, ACommandBetweenThePartsOfAMessageEndsItNot) {
  PeerLimits limits;
  limits.parts = 3;
  PeerAccount peer = account(limits);
  const std::string ping = zmtp_frame(std::string("\4PING\0\1", 7), 4);
  EXPECT_EQ(send(peer, zmtp_frame("", 1) + ping + zmtp_frame("", 1) + ping), std::nullopt);
  EXPECT_EQ(send(peer, zmtp_frame("", 1)), Refusal::message_parts);
  PeerAccount other = account(limits);
  const std::string request = zmtp_frame("", 1) + ping + zmtp_frame("tag", 1) + ping + zmtp_frame("query");
  EXPECT_EQ(send(other, request + ping + request), std::nullopt) << "nor are they parts";
}

}  // namespace
}  // namespace vigil::cluster
