// The thread that publishes: its queue, its order, its end.
#include "cluster/topics/publishing_thread.h"

#include <latch>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;

TopicPublisher::Options anywhere() {
  return {.endpoint = "tcp://127.0.0.1:0", .linger = 0ms};
}

TopicMessage event(std::uint64_t position) {
  return {"a/", position, std::to_string(position), position};
}

TEST(PublishingThread, TakesSoManyAndTellsWhatWasHandedOver) {
  std::latch go(1);
  std::vector<std::uint64_t> handed;
  PublishingThread publisher(anywhere(), [&](TopicPublisher&, const TopicMessage& each) {
    go.wait();
    handed.push_back(each.position);
    return true;
  });
  std::uint64_t taken = 0;
  while (publisher.publish(event(taken + 1))) ++taken;
  EXPECT_EQ(taken, PublishingThread::kWaiting);
  EXPECT_LT(taken, 256U) << "so that who looks at 256 sees one that was not taken";
  EXPECT_EQ(publisher.published(), 0U);
  go.count_down();
  publisher.drain();
  EXPECT_EQ(publisher.published(), taken);
  EXPECT_EQ(handed.size(), taken);
  EXPECT_TRUE(std::is_sorted(handed.begin(), handed.end()));
  EXPECT_TRUE(publisher.publish(event(taken + 1))) << "there is room again";
  publisher.start_over();
  EXPECT_EQ(publisher.published(), 0U);
  EXPECT_EQ(handed.size(), taken + 1) << "that was handed over before";
}

TEST(PublishingThread, WhatTheSocketDoesNotTakeIsOfferedAgainInOrder) {
  int refusals = 5;
  std::vector<std::uint64_t> handed;
  PublishingThread publisher(anywhere(), [&](TopicPublisher&, const TopicMessage& each) {
    if (refusals-- > 0) return false;
    handed.push_back(each.position);
    return true;
  });
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_TRUE(publisher.publish(event(i)));
  publisher.drain();
  EXPECT_THAT(handed, ::testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(publisher.published(), 3U);
}

TEST(PublishingThread, AtItsEndWhatWasTakenIsHandedOver) {
  std::latch go(1);
  std::uint64_t handed = 0;
  {
    PublishingThread publisher(anywhere(), [&](TopicPublisher&, const TopicMessage&) {
      go.wait();
      ++handed;
      return true;
    });
    for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_TRUE(publisher.publish(event(i)));
    go.count_down();
  }
  EXPECT_EQ(handed, 100U);
}

TEST(PublishingThread, AtItsEndASocketThatTakesNothingIsNotWaitedFor) {
  PublishingThread publisher(anywhere(), [](TopicPublisher&, const TopicMessage&) { return false; });
  EXPECT_TRUE(publisher.publish(event(1)));
  EXPECT_EQ(publisher.published(), 0U);
}

TEST(PublishingThread, ASubscriberGetsLastEventsThenLiveOnesToTheEnd) {
  std::optional<PublishingThread> publisher(std::in_place,
                                            TopicPublisher::Options{.endpoint = "tcp://127.0.0.1:0"});
  publisher->remember({"a/", 7, "remembered", 7});
  publisher->remember({"b/", 2, "remembered", 8});
  EXPECT_TRUE(publisher->publish({"b/", 3, "newer", 9}));
  publisher->drain();
  TopicSubscriber sink({.endpoint = publisher->endpoint(), .prefixes = {""}});
  // Nobody calls anything: the thread greets by itself.
  const auto first = sink.receive(10s);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->body, "remembered");
  const auto second = sink.receive(10s);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->body, "newer") << "not what was remembered before it";
  for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_TRUE(publisher->publish(event(i)));
  // What was published goes out before the sockets close.
  publisher.reset();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const auto live = sink.receive(10s);
    ASSERT_TRUE(live.has_value()) << i;
    EXPECT_EQ(live->position, i);
  }
}

TEST(PublishingThread, APortInUseIsToldAtOnce) {
  const PublishingThread first(anywhere());
  EXPECT_THROW(PublishingThread({.endpoint = first.endpoint()}), TopicError);
}

}  // namespace
}  // namespace vigil::cluster
