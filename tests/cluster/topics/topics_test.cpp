#include "cluster/topics/topics.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/process/clock.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto kLong = 10s;
constexpr auto kShort = 50ms;

TopicPublisher publisher(int high_water_mark = 1000) {
  return TopicPublisher({.endpoint = "tcp://127.0.0.1:0", .high_water_mark = high_water_mark, .linger = 0ms});
}

TopicSubscriber subscriber(const std::string& endpoint, const std::string& prefix) {
  return TopicSubscriber({.endpoint = endpoint, .prefixes = {prefix}, .high_water_mark = 10'000});
}

/// Publishes a greeting until the subscriber has it: from then on the subscription stands.
void meet(TopicPublisher& source, TopicSubscriber& sink, const std::string& topic) {
  for (std::uint64_t i = 1; i < 1000; ++i) {
    source.serve();
    source.publish({topic, i, "hello", 0});
    if (sink.receive(10ms)) {
      while (sink.receive(kShort)) {
      }
      return;
    }
  }
  FAIL() << "the subscriber never heard of the publisher";
}

TEST(Topics, ASubscriberGetsWhatMatchesItsPrefix) {
  TopicPublisher source = publisher();
  TopicSubscriber sink = subscriber(source.endpoint(), "alert/north/");
  meet(source, sink, "alert/north/hello/");
  source.publish({"alert/south/gate/car/", 1, "not for you", 0});
  source.publish({"alert/north/gate/car/", 7, std::string("body\0\n", 6), 0});
  const auto message = sink.receive(kLong);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->topic, "alert/north/gate/car/");
  EXPECT_EQ(message->sequence, 7U);
  EXPECT_EQ(message->body, std::string("body\0\n", 6));
  EXPECT_FALSE(sink.receive(kShort).has_value());
}

TEST(Topics, ALateSubscriberGetsTheLastEventOfEachTopic) {
  TopicPublisher source = publisher();
  for (std::uint64_t i = 1; i <= 3; ++i) source.publish({"alert/a/", i, "a" + std::to_string(i), 0});
  source.publish({"alert/b/", 9, "b9", 0});
  source.publish({"status/a/", 1, "s", 0});
  for (int visitor = 0; visitor < 2; ++visitor) {
    TopicSubscriber sink = subscriber(source.endpoint(), "alert/");
    std::optional<TopicMessage> first;
    for (int i = 0; i < 1000 && !first; ++i) {
      source.serve();
      first = sink.receive(10ms);
    }
    ASSERT_TRUE(first.has_value()) << "visitor " << visitor;
    EXPECT_EQ(first->body, "a3");
    const auto second = sink.receive(kLong);
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->sequence, 9U);
    EXPECT_FALSE(sink.receive(kShort).has_value());
  }
}

TEST(Topics, ASubscriberThatReadsNothingHoldsNobodyUpAndIsCounted) {
  TopicPublisher source = publisher(10);
  TopicSubscriber lazy({.endpoint = source.endpoint(), .prefixes = {""}, .high_water_mark = 10});
  TopicSubscriber eager = subscriber(source.endpoint(), "");
  meet(source, lazy, "hello/");
  meet(source, eager, "hello/");
  while (lazy.receive(kShort)) {
  }
  // Enough for the buffers of the system between the two.
  const std::string body(64 * 1024, 'x');
  std::uint64_t received = 0;
  const std::uint64_t events = 2000;
  for (std::uint64_t i = 1; i <= events; ++i) {
    EXPECT_TRUE(source.publish({"load/", i, body, 0}));
    if (eager.receive(kLong)) ++received;
  }
  EXPECT_EQ(received, events);
  EXPECT_GT(source.take_dropped(), 0U);
  EXPECT_EQ(source.take_dropped(), 0U) << "told once";
}

TEST(Topics, APortInUseIsOneLineWithItsName) {
  const TopicPublisher first = publisher();
  try {
    TopicPublisher second({.endpoint = first.endpoint()});
    FAIL() << "no error";
  } catch (const TopicError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot publish on " + first.endpoint() + ": Address already in use");
  }
  EXPECT_THROW(TopicPublisher({.endpoint = "carrier-pigeon://gate"}), TopicError);
  EXPECT_THROW(subscriber("tcp://", ""), TopicError);
}

TEST(Topics, ForeignMessagesArePassedOver) {
  zmq::context_t context;
  zmq::socket_t source(context, zmq::socket_type::pub);
  source.set(zmq::sockopt::linger, 0);
  source.bind("tcp://127.0.0.1:0");
  TopicSubscriber sink = subscriber(source.get(zmq::sockopt::last_endpoint), "");
  const auto send = [&](const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      source.send(zmq::buffer(parts[i]),
                  i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  };
  std::optional<TopicMessage> message;
  for (int i = 0; i < 1000 && !message; ++i) {
    send({"one part"});
    send({"topic", "5", "body"});
    send({"topic", "not a number", "1", "body"});
    send({"topic", "-1", "1", "body"});
    send({"topic", "1", "1 ", "body"});
    send({"topic", "1", "1", "body", "more"});
    send({"topic", "99999999999999999999999", "1", "body"});
    send({"topic", "5", "77", "body"});
    message = sink.receive(10ms);
  }
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->sequence, 5U);
  EXPECT_EQ(message->position, 77U);
}

TEST(SystemClock, GoesOnAndKnowsTheDay) {
  const SystemClock clock;
  const auto before = clock.now();
  EXPECT_LE(before, clock.now());
  EXPECT_GT(clock.wall(), base::Clock::WallTime(std::chrono::seconds(1700000000)));
}

}  // namespace
}  // namespace vigil::cluster
