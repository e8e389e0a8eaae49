// Peers that are let in and send without end, and a port without descriptors, over real sockets.
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/process/process.h"
#include "tests/cluster/bulk/rude.h"
#include "tests/cluster/sockets/raw_peer.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum BulkDirection;

constexpr unsigned kMore = 1;

std::string wire(const Frames& frames) {
  std::string text;
  for (std::size_t i = 0; i < frames.size(); ++i)
    text += zmtp_frame(std::string(frames[i].text()), i + 1 < frames.size() ? kMore : 0U);
  return text;
}

/// Parts of one message, of which none is the last.
std::string parts(std::size_t count, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += zmtp_frame(std::string(size, 'x'), kMore);
  return text;
}

/// Sends that again and again until the other side closes; how many bytes, `most` at most.
template <class Peer>
std::uint64_t send_without_end(const Peer& peer, const std::string& text, std::uint64_t most) {
  std::uint64_t sent = 0;
  while (sent < most) {
    const std::size_t now = peer.send(text);
    sent += now;
    if (now < text.size()) break;
  }
  return sent;
}

/// A sender of the protocol on a plain socket.
class RawHost {
 public:
  RawHost() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&own), size) != 0 ||
        ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size) != 0)
      throw std::runtime_error("cannot listen");
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  ~RawHost() {
    if (receiver_ >= 0) ::close(receiver_);
    ::close(listener_);
  }
  RawHost(const RawHost&) = delete;
  RawHost& operator=(const RawHost&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  /// Waits for a receiver, and lets it in.
  bool welcome() {
    receiver_ = ::accept(listener_, nullptr, nullptr);
    send(zmtp_greeting() + zmtp_ready("ROUTER"));
    std::string seen;
    // Its greeting, that it is ready, and its hello, in which our name is.
    while (seen.find("READY") == std::string::npos || seen.find("\1a") == std::string::npos) {
      std::string text(1 << 16, '\0');
      const ssize_t count = ::recv(receiver_, text.data(), text.size(), 0);
      if (count <= 0) return false;
      seen.append(text, 0, static_cast<std::size_t>(count));
    }
    send(wire(encode(BulkWelcome{.incarnation = 1, .number = 1})));
    return true;
  }
  std::size_t send(const std::string& text) const {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t count = ::send(receiver_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
    return sent;
  }

 private:
  int listener_;
  int receiver_ = -1;
  std::string endpoint_;
};

/// That a receiver sends; it is let in.
class EndlessReceiverTest : public ::testing::Test {
 protected:
  EndlessReceiverTest() {
    a_.port.set_peers({{"b", "tcp://127.0.0.1:1"}, {"c", c_.port.endpoint()}});
    c_.port.set_peers({{"a", a_.port.endpoint()}});
    rude_.emplace(a_.port.endpoint());
    EXPECT_TRUE(rude_->shake_hands("DEALER"));
    rude_->send(wire(encode(hello("b"))));
    EXPECT_TRUE(until([&] { return a_.heard.opened("b", outgoing).size() == 1; }));
    expect_served(a_, c_, "a", "c");
  }
  void expect_cut() {
    ASSERT_TRUE(until([&] { return !a_.heard.resets("b", outgoing).empty(); }));
    EXPECT_EQ(name_of(a_.heard.resets("b", outgoing).front().why), "limits");
    EXPECT_TRUE(rude_->closes());
    EXPECT_TRUE(until([&] { return a_.port.strangers().connections == 1; })) << "the one of c";
    expect_served(a_, c_, "a", "c");
    EXPECT_THAT(a_.heard.resets("c", outgoing), IsEmpty());
  }

  Node a_{"a"};
  Node c_{"c"};
  std::optional<RawPeer> rude_;
};

TEST_F(EndlessReceiverTest, AMessageThatDoesNotEndIsCutOff) {
  const std::uint64_t most = std::uint64_t{8} << 30;
  EXPECT_LT(send_without_end(*rude_, parts(64, 8 * kKiB), most), most);
  expect_cut();
}

TEST_F(EndlessReceiverTest, SoIsOneOfNothingButEmptyParts) {
  const std::uint64_t most = std::uint64_t{8} << 30;
  EXPECT_LT(send_without_end(*rude_, parts(10'000, 0), most), most);
  expect_cut();
}

TEST_F(EndlessReceiverTest, OneThatEndsWithMorePartsThanMayBeIsNotKept) {
  rude_->send(parts(1000, 10) + zmtp_frame("end"));
  expect_cut();
}

TEST_F(EndlessReceiverTest, WordsThatNobodyAskedForAreCutOff) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += wire(i % 2 == 0 ? encode(BulkAlive{}) : encode(BulkCredit{}));
  const std::uint64_t most = std::uint64_t{8} << 30;
  EXPECT_LT(send_without_end(*rude_, many, most), most);
  expect_cut();
}

TEST(EndlessSenderTest, AMessageThatDoesNotEndIsHungUpOn) {
  for (const std::size_t size : {std::size_t{0}, 60 * kKiB}) {
    RawHost rude;
    Node b("b", {.bytes = 4 * kMiB, .messages = 16, .message = kMiB});
    b.port.set_peers({{"a", rude.endpoint()}});
    ASSERT_TRUE(rude.welcome());
    ASSERT_TRUE(until([&] { return b.heard.opened("a", incoming).size() == 1; }));
    const std::uint64_t most = std::uint64_t{8} << 30;
    EXPECT_LT(send_without_end(rude, parts(size == 0 ? 10'000 : 16, size), most), most);
    ASSERT_TRUE(until([&] { return !b.heard.resets("a", incoming).empty(); }));
    EXPECT_EQ(name_of(b.heard.resets("a", incoming).front().why), "limits");
    EXPECT_EQ(b.heard.count("a"), 0U);
  }
}

TEST(EndlessSenderTest, SoIsOneThatEndsWithMorePartsThanMayBe) {
  RawHost rude;
  Node b("b", {.bytes = 4 * kMiB, .messages = 16, .message = kMiB, .parts = 4});
  b.port.set_peers({{"a", rude.endpoint()}});
  ASSERT_TRUE(rude.welcome());
  rude.send(parts(1000, 10) + zmtp_frame("end"));
  ASSERT_TRUE(until([&] { return !b.heard.resets("a", incoming).empty(); }));
  EXPECT_EQ(name_of(b.heard.resets("a", incoming).front().why), "limits");
}

TEST(EndlessSenderTest, WhatWasGrantedIsTakenWithAllThatIsAroundIt) {
  // As many parts as there may be, none so large that it is a frame of its own, and the largest frames.
  const BulkLimits limits{.bytes = 4 * kMiB, .messages = 16, .message = kMiB};
  Node a("a", limits);
  Node b("b", limits);
  a.port.set_peers({{"b", b.port.endpoint()}});
  b.port.set_peers({{"a", a.port.endpoint()}});
  for (std::uint64_t i = 0; i < 64; ++i) {
    const BulkMessage message{"", i % 2 == 0 ? std::vector<Bytes>(1024, made_bytes(i, 100))
                                             : std::vector<Bytes>(100, made_bytes(i, 9 * kKiB))};
    ASSERT_TRUE(until([&] { return bool(a.port.send("b", message)); }));
  }
  EXPECT_TRUE(until([&] { return b.heard.count("a") == 64; }));
  EXPECT_THAT(b.heard.resets("a", incoming), IsEmpty());
}

/// This process gets no descriptor more while this is there.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    // The lowest that is free: all below are taken.
    const int next = ::dup(0);
    ::close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(KeysTest, WithoutDescriptorsTheKeysStayAndAreChangedWhenThereAreSome) {
  const KeyPair a_keys = make_key_pair();
  const KeyPair a_next = make_key_pair();
  const KeyPair b_keys = make_key_pair();
  Node a("a", {}, {.endpoint = "", .keys = a_keys});
  Node b("b", {}, {.endpoint = "", .keys = b_keys});
  a.port.set_peers({{"b", b.port.endpoint(), {b_keys.public_key}}});
  b.port.set_peers({{"a", a.port.endpoint(), {a_next.public_key, a_keys.public_key}}});
  expect_served(a, b, "a", "b");
  expect_served(b, a, "b", "a");
  {
    const NoDescriptors none;
    a.port.set_keys(a_next);
    ASSERT_TRUE(until([&] { return !a.heard.troubles().empty(); }));
    EXPECT_EQ(a.heard.troubles().front(),
              "another key is not taken up yet, the one before stays: Too many open files");
    expect_served(a, b, "a", "b");
    expect_served(b, a, "b", "a");
    EXPECT_THAT(a.heard.resets("b", outgoing), IsEmpty());
  }
  // Whoever came by the old one comes anew.
  ASSERT_TRUE(until([&] { return !a.heard.resets("b", outgoing).empty(); }));
  b.port.set_peers({{"a", a.port.endpoint(), {a_next.public_key}}});
  expect_served(a, b, "a", "b");
  expect_served(b, a, "b", "a");
  EXPECT_THAT(a.heard.troubles(), SizeIs(1)) << "once";
}

}  // namespace
}  // namespace vigil::cluster
