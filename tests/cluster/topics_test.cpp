#include "cluster/topics.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/clock.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto kLong = 10s;
constexpr auto kShort = 50ms;

TopicPublisher publisher(int high_water_mark = 1000) {
  return TopicPublisher({"tcp://127.0.0.1:0", high_water_mark, 0ms});
}

/// Publishes a greeting until the subscriber has it: from then on the subscription stands.
void meet(TopicPublisher& source, TopicSubscriber& sink, const std::string& topic) {
  for (std::uint64_t i = 1; i < 1000; ++i) {
    source.serve();
    source.publish({topic, i, "hello"});
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
  TopicSubscriber sink(source.endpoint(), "alert/north/");
  meet(source, sink, "alert/north/hello/");
  source.publish({"alert/south/gate/car/", 1, "not for you"});
  source.publish({"alert/north/gate/car/", 7, std::string("body\0\n", 6)});
  const auto message = sink.receive(kLong);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->topic, "alert/north/gate/car/");
  EXPECT_EQ(message->sequence, 7U);
  EXPECT_EQ(message->body, std::string("body\0\n", 6));
  EXPECT_FALSE(sink.receive(kShort).has_value());
}

TEST(Topics, ALateSubscriberGetsTheLastEventOfEachTopic) {
  TopicPublisher source = publisher();
  for (std::uint64_t i = 1; i <= 3; ++i) source.publish({"alert/a/", i, "a" + std::to_string(i)});
  source.publish({"alert/b/", 9, "b9"});
  source.publish({"status/a/", 1, "s"});
  for (int visitor = 0; visitor < 2; ++visitor) {
    TopicSubscriber sink(source.endpoint(), "alert/");
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
  TopicSubscriber lazy(source.endpoint(), "", 10);
  TopicSubscriber eager(source.endpoint(), "");
  meet(source, lazy, "hello/");
  meet(source, eager, "hello/");
  while (lazy.receive(kShort)) {
  }
  // Enough for the buffers of the system between the two.
  const std::string body(64 * 1024, 'x');
  std::uint64_t received = 0;
  const std::uint64_t events = 2000;
  for (std::uint64_t i = 1; i <= events; ++i) {
    EXPECT_TRUE(source.publish({"load/", i, body}));
    if (eager.receive(kLong)) ++received;
  }
  EXPECT_EQ(received, events);
  EXPECT_GT(source.take_dropped(), 0U);
  EXPECT_EQ(source.take_dropped(), 0U) << "told once";
}

TEST(Topics, APortInUseIsOneLineWithItsName) {
  const TopicPublisher first = publisher();
  try {
    TopicPublisher second({first.endpoint(), 1000, 0ms});
    FAIL() << "no error";
  } catch (const TopicError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot publish on " + first.endpoint() + ": Address already in use");
  }
  EXPECT_THROW(TopicPublisher({"carrier-pigeon://gate", 1000, 0ms}), TopicError);
  EXPECT_THROW(TopicSubscriber("tcp://", ""), TopicError);
}

TEST(Topics, ForeignMessagesArePassedOver) {
  zmq::context_t context;
  zmq::socket_t source(context, zmq::socket_type::pub);
  source.set(zmq::sockopt::linger, 0);
  source.bind("tcp://127.0.0.1:0");
  TopicSubscriber sink(source.get(zmq::sockopt::last_endpoint), "");
  const auto send = [&](const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      source.send(zmq::buffer(parts[i]),
                  i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  };
  std::optional<TopicMessage> message;
  for (int i = 0; i < 1000 && !message; ++i) {
    send({"one part"});
    send({"topic", "not a number", "body"});
    send({"topic", "-1", "body"});
    send({"topic", "1", "body", "more"});
    send({"topic", "99999999999999999999999", "body"});
    send({"topic", "5", "body"});
    message = sink.receive(10ms);
  }
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->sequence, 5U);
}

TEST(SequenceTracker, TellsGapsAndResends) {
  SequenceTracker tracker;
  EXPECT_EQ(tracker.see("a/", 41).kind, Arrival::Kind::fresh) << "it was not there before";
  EXPECT_EQ(tracker.see("a/", 42).kind, Arrival::Kind::fresh);
  EXPECT_EQ(tracker.see("b/", 1).kind, Arrival::Kind::fresh) << "topics count apart";
  const Arrival gap = tracker.see("a/", 46);
  EXPECT_EQ(gap.kind, Arrival::Kind::gap);
  EXPECT_EQ(gap.missing, 3U);
  EXPECT_EQ(tracker.see("a/", 46).kind, Arrival::Kind::duplicate);
  EXPECT_EQ(tracker.see("a/", 44).kind, Arrival::Kind::duplicate) << "late counts as seen: its gap was told";
  EXPECT_EQ(tracker.see("a/", 47).kind, Arrival::Kind::fresh);
}

TEST(SystemClock, GoesOnAndKnowsTheDay) {
  const SystemClock clock;
  const auto before = clock.now();
  EXPECT_LE(before, clock.now());
  EXPECT_GT(clock.wall(), config::Clock::WallTime(std::chrono::seconds(1700000000)));
}

}  // namespace
}  // namespace vigil::cluster
