// How much of a message may come without its end, and what becomes of whoever sends more.
#include "cluster/bulk/unfinished_bytes.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.hpp>

#include "cluster/bulk/accepted_connections.h"
#include "cluster/bulk/frames.h"
#include "tests/cluster/sockets/raw_peer.h"

namespace vigil::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

TEST(UnfinishedBytesTest, CountsFromTheLastWholeMessage) {
  UnfinishedBytes bytes;
  EXPECT_TRUE(bytes.look(1'000'000, 100)) << "the first look begins it";
  EXPECT_TRUE(bytes.look(1'000'100, 100));
  EXPECT_FALSE(bytes.look(1'000'101, 100));
  bytes.heard();
  EXPECT_TRUE(bytes.look(5'000'000, 100));
  EXPECT_FALSE(bytes.look(5'000'101, 100));
}

TEST(UnfinishedBytesTest, AnotherConnectionOfTheSameNumberBeginsAnew) {
  UnfinishedBytes bytes;
  EXPECT_TRUE(bytes.look(1'000'000, 100));
  EXPECT_TRUE(bytes.look(7, 100));
  EXPECT_TRUE(bytes.look(107, 100));
  EXPECT_FALSE(bytes.look(~0ULL, 100));
}

TEST(UnfinishedBytesTest, WhatIsGrantedFitsWithAllThatIsAroundIt) {
  const BulkLimits limits;
  EXPECT_GT(most_unfinished_of_sender(limits), limits.bytes);
  EXPECT_LT(most_unfinished_of_sender(limits), 2 * limits.bytes);
  // A credit of one number: 16 bytes of room, its count, its number, its kind and sum, and CURVE's.
  EXPECT_GT(most_unfinished_of_receiver(limits), limits.messages * std::uint64_t{16 + 2 + 8 + 9 + 42});
  EXPECT_LT(most_unfinished_of_receiver(limits), std::uint64_t{1} << 20);
  // As large as they can be said to be.
  EXPECT_GT(most_unfinished_of_sender({.bytes = (std::uint64_t{1} << 62) - 1, .messages = 1}),
            std::uint64_t{1} << 62);
}

TEST(UnfinishedBytesTest, TheKernelTellsWhatCame) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  socklen_t size = sizeof own;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size), 0);
  const testing::RawPeer peer("tcp://127.0.0.1:" + std::to_string(ntohs(own.sin_port)));
  const int accepted = ::accept(listener, nullptr, nullptr);
  EXPECT_EQ(bytes_received(accepted), 0U);
  peer.send(std::string(12'345, 'x'));
  // Whether they are read or not.
  std::string read(10'000, '\0');
  ASSERT_EQ(::recv(accepted, read.data(), read.size(), MSG_WAITALL), 10'000);
  ASSERT_EQ(::recv(accepted, read.data(), 2'345, MSG_WAITALL), 2'345);
  EXPECT_EQ(bytes_received(accepted), 12'345U);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_EQ(bytes_received(pipe[0]), std::nullopt);
  EXPECT_EQ(bytes_received(-1), std::nullopt);
  for (const int each : {listener, accepted, pipe[0], pipe[1]}) ::close(each);
}

/// Connections without descriptors of this process: numbers that nothing has.
class EndlessTest : public ::testing::Test {
 protected:
  static constexpr int kA = 1'000'001, kB = 1'000'002;
  void pass(std::chrono::nanoseconds time) {
    now_ += time;
    book_.step(now_);
  }
  std::map<int, std::uint64_t> received_;
  base::Clock::TimePoint now_{1h};
  AcceptedConnections book_{1, 10, base::Duration(3'600'000), 1000, [this](int descriptor) {
                              ++asked_;
                              const auto found = received_.find(descriptor);
                              return found == received_.end() ? std::nullopt : std::optional(found->second);
                            }};
  int asked_ = 0;
};

TEST_F(EndlessTest, WhoSendsWithoutAnEndIsClosedAndTold) {
  for (const int each : {kA, kB}) {
    received_[each] = 100;
    book_.opened(each, now_);
  }
  ASSERT_TRUE(book_.speaks("a", kA, now_));
  ASSERT_TRUE(book_.speaks("b", kB, now_));
  pass(50ms);
  for (int i = 1; i <= 20; ++i) {
    received_[kA] += 100;
    received_[kB] += 100;
    // The other one comes to an end of its message now and then.
    if (i % 5 == 0) {
      EXPECT_TRUE(book_.speaks("b", kB, now_));
    }
    pass(50ms);
    if (i == 10) {
      EXPECT_THAT(book_.take_overrun(), IsEmpty());
    }
    if (i == 11) {
      EXPECT_THAT(book_.take_overrun(), ElementsAre("a"));
      EXPECT_FALSE(book_.speaks("a", kA, now_)) << "what still comes is not heard";
    }
  }
  EXPECT_THAT(book_.take_overrun(), IsEmpty()) << "once";
  EXPECT_TRUE(book_.speaks("b", kB, now_));
}

TEST_F(EndlessTest, OneThatHasNoNameYetIsClosedToo) {
  received_[kA] = 0;
  book_.opened(kA, now_);
  pass(50ms);
  received_[kA] = 1001;
  pass(50ms);
  EXPECT_THAT(book_.take_overrun(), IsEmpty());
  EXPECT_FALSE(book_.speaks("a", kA, now_));
}

TEST_F(EndlessTest, WhatIsThrownAwayCountsThoughItComesToItsEnd) {
  received_[kA] = 0;
  book_.opened(kA, now_);
  EXPECT_TRUE(book_.speaks("a", kA, now_));
  pass(50ms);
  // It has some time to hear why.
  book_.dismiss("a", now_ + 1h);
  received_[kA] = 900;
  EXPECT_FALSE(book_.speaks("a", kA, now_));
  pass(50ms);
  EXPECT_THAT(book_.take_overrun(), IsEmpty());
  received_[kA] = 1800;
  EXPECT_FALSE(book_.speaks("a", kA, now_));
  pass(50ms);
  EXPECT_THAT(book_.take_overrun(), ElementsAre("a"));
}

TEST_F(EndlessTest, TheKernelIsAskedNowAndThenAndWhatItDoesNotTellClosesNobody) {
  book_.opened(kA, now_);
  const auto next = book_.step(now_);
  EXPECT_EQ(next - now_, 50ms);
  for (int i = 0; i < 49; ++i) pass(1ms);
  EXPECT_EQ(asked_, 1);
  pass(1ms);
  EXPECT_EQ(asked_, 2);
  EXPECT_TRUE(book_.speaks("a", kA, now_));
  EXPECT_EQ(book_.closed(kA), "a");
  EXPECT_EQ(book_.step(now_), base::Clock::TimePoint::max()) << "there is nobody";
}

TEST(TakeMessageTest, PartsThatAreTooManyAreNotKept) {
  zmq::context_t context;
  zmq::socket_t from(context, zmq::socket_type::pair);
  zmq::socket_t to(context, zmq::socket_type::pair);
  to.bind("inproc://parts");
  from.connect("inproc://parts");
  const auto send = [&](int parts) {
    for (int i = 1; i <= parts; ++i)
      from.send(zmq::message_t(std::to_string(i)),
                i < parts ? zmq::send_flags::sndmore : zmq::send_flags::none);
  };
  std::vector<zmq::message_t> parts;
  EXPECT_EQ(take_message(to, parts, 2), Taken::nothing);
  for (const int each : {1, 2, 3, 1000, 2}) send(each);
  EXPECT_EQ(take_message(to, parts, 2), Taken::whole);
  EXPECT_THAT(parts, SizeIs(1));
  EXPECT_EQ(take_message(to, parts, 2), Taken::whole);
  EXPECT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[1].to_string(), "2");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(take_message(to, parts, 2), Taken::too_many);
    ASSERT_THAT(parts, SizeIs(2));
    EXPECT_EQ(parts[0].to_string() + parts[1].to_string(), "12");
  }
  EXPECT_EQ(take_message(to, parts, 2), Taken::whole) << "the next one is as it was sent";
  EXPECT_EQ(parts[1].to_string(), "2");
  EXPECT_EQ(take_message(to, parts, 2), Taken::nothing);
  EXPECT_THAT(parts, IsEmpty());
}

}  // namespace
}  // namespace vigil::cluster
