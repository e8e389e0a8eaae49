// What goes into the outbox first, what waits, and how much goes at once.
#include "actors/alerts/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr base::Clock::TimePoint kNow{1h};

class EventQueueTest : public ::testing::Test {
 protected:
  static WaitingEvent event(std::vector<std::string> topics, const std::string& what, bool urgent = true) {
    WaitingEvent result;
    result.topics = std::move(topics);
    result.body = [what](const EventDraft& draft) {
      return what + std::to_string(draft.sequence) + draft.text.value_or("");
    };
    result.urgent = urgent;
    return result;
  }

  static WaitingEvent explained(std::vector<std::string> topics, const std::string& what,
                                std::uint64_t ticket) {
    WaitingEvent result = event(std::move(topics), what);
    result.ticket = ticket;
    result.until = kNow + 10s;
    result.camera = "gate";
    return result;
  }

  EventQueue::Batch next(EventQueue& queue, base::Clock::TimePoint now = kNow) {
    return queue.next(now, [this](const std::string& topic) { return sequences_[topic]; });
  }

  /// "topic body" of what goes next, and takes it as written.
  std::vector<std::string> write(EventQueue& queue, base::Clock::TimePoint now = kNow) {
    std::vector<std::string> result;
    const EventQueue::Batch batch = next(queue, now);
    for (const OutboxEvent& each : batch.events) {
      EXPECT_EQ(each.sequence, ++sequences_[each.topic]);
      result.push_back(each.topic + ' ' + each.body);
    }
    queue.written(batch);
    return result;
  }

  std::map<std::string, std::uint64_t> sequences_;
};

TEST_F(EventQueueTest, AlertsGoAheadOfOthersAndATopicsOrderStays) {
  EventQueue queue({});
  queue.push(event({"s/"}, "first", false));
  queue.push(event({"a/", "t/"}, "alert"));
  queue.push(event({"s/"}, "second", false));
  queue.push(event({"a/", "t/"}, "next"));
  EXPECT_EQ(queue.size(), 6U);
  EXPECT_THAT(write(queue),
              ElementsAre("a/ alert1", "t/ alert1", "a/ next2", "t/ next2", "s/ first1", "s/ second2"));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_TRUE(next(queue).empty());
}

TEST_F(EventQueueTest, WhatIsNotWrittenStaysAsItIs) {
  EventQueue queue({});
  queue.push(event({"a/"}, "x"));
  EXPECT_THAT(next(queue).events, SizeIs(1));
  EXPECT_THAT(next(queue).events, SizeIs(1));
  EXPECT_EQ(queue.size(), 1U);
  const EventQueue::Batch batch = next(queue);
  queue.push(event({"a/"}, "later"));
  queue.written(batch);
  sequences_["a/"] = 1;
  EXPECT_THAT(write(queue), ElementsAre("a/ later2"));
}

TEST_F(EventQueueTest, WhatWaitsForItsExplanationHoldsBackItsOwnTopicsAlone) {
  EventQueue queue({});
  queue.push(explained({"a/", "t/"}, "slow", 7));
  queue.push(event({"b/"}, "other"));
  queue.push(event({"t/", "u/"}, "behind"));
  queue.push(event({"u/"}, "behind that"));
  queue.push(event({"s/"}, "status", false));
  EXPECT_TRUE(queue.explains("gate"));
  EXPECT_FALSE(queue.explains("yard"));
  EXPECT_THAT(write(queue), ElementsAre("b/ other1", "s/ status1"));
  EXPECT_THAT(write(queue, kNow + 9s), IsEmpty());
  queue.explained(8, "somebody else's");
  EXPECT_THAT(write(queue), IsEmpty());
  queue.explained(7, " it is");
  EXPECT_FALSE(queue.explains("gate"));
  EXPECT_THAT(write(queue),
              ElementsAre("a/ slow1 it is", "t/ slow1 it is", "t/ behind2", "u/ behind1", "u/ behind that2"));
}

TEST_F(EventQueueTest, AnExplanationIsWaitedForSoLongAndNoLonger) {
  EventQueue queue({});
  queue.push(explained({"a/"}, "slow", 7));
  EXPECT_THAT(write(queue, kNow + 10s), ElementsAre("a/ slow1"));
  queue.push(explained({"a/"}, "slow", 8));
  queue.let_go();
  EXPECT_THAT(write(queue), ElementsAre("a/ slow2"));
}

TEST_F(EventQueueTest, ABatchIsBoundedAndTakesNoEventApart) {
  EventQueue queue({.batch_events = 3});
  for (int i = 0; i < 3; ++i) queue.push(event({"a/", "b/"}, "x"));
  queue.push(event({"s/"}, "y", false));
  EXPECT_TRUE(next(queue).more);
  EXPECT_THAT(write(queue), SizeIs(2)) << "the second has no room for both copies";
  EXPECT_THAT(write(queue), SizeIs(2));
  EXPECT_FALSE(next(queue).more);
  EXPECT_THAT(write(queue), SizeIs(3));
  EXPECT_FALSE(next(queue).more);

  EventQueue small({.batch_bytes = 10});
  small.push(event({"a/"}, "larger than all that goes at once"));
  small.push(event({"a/"}, "x"));
  small.push(event({"b/"}, "x"));
  EXPECT_THAT(write(small), SizeIs(1));
  EXPECT_THAT(write(small), SizeIs(2));
}

TEST_F(EventQueueTest, BeyondItsBoundTheOldestAreLostAlertsLast) {
  EventQueue queue({.most = 4});
  queue.push(event({"a/", "t/"}, "alert"));
  queue.push(event({"s/"}, "status", false));
  queue.push(event({"a/"}, "next"));
  EXPECT_EQ(queue.push(event({"s/"}, "status", false)), 1U) << "the older status";
  EXPECT_EQ(queue.push(event({"a/"}, "third")), 1U) << "the other one";
  EXPECT_EQ(queue.push(event({"a/"}, "fourth")), 2U) << "both copies of the oldest alert";
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_THAT(write(queue), ElementsAre("a/ next1", "a/ third2", "a/ fourth3"));
  EXPECT_EQ(queue.push(event({"1/", "2/", "3/", "4/", "5/"}, "wide")), 0U) << "alone, it always fits";
  EXPECT_THAT(write(queue), SizeIs(5));
}

TEST_F(EventQueueTest, AmongAlertsAloneThereIsNoRoomForAnother) {
  EventQueue queue({.most = 3});
  queue.push(event({"s/"}, "status", false));
  queue.push(event({"a/", "t/"}, "alert"));
  EXPECT_EQ(queue.push(event({"s/", "u/"}, "wide", false)), 3U) << "the older one, and itself";
  EXPECT_THAT(write(queue), ElementsAre("a/ alert1", "t/ alert1"));
}

TEST_F(EventQueueTest, NotesGoWithTheirEventsAndAlone) {
  EventQueue queue({});
  WaitingEvent noted = event({"a/", "b/"}, "x");
  noted.note = [](const std::string& body) { return OutboxNote{"k", body}; };
  queue.push(std::move(noted));
  WaitingEvent nothing;
  nothing.note = [](const std::string&) { return OutboxNote{"old", std::nullopt}; };
  std::vector<WaitingEvent> first;
  first.push_back(std::move(nothing));
  queue.push_front(std::move(first));
  const EventQueue::Batch batch = next(queue);
  ASSERT_THAT(batch.notes, SizeIs(2));
  EXPECT_EQ(batch.notes[0].key, "old");
  EXPECT_EQ(batch.notes[0].value, std::nullopt);
  EXPECT_EQ(batch.notes[1].value, "x1") << "of the body on its own topic";
  EXPECT_THAT(batch.events, SizeIs(2));
  queue.written(batch);
  EXPECT_TRUE(queue.empty());
}

TEST_F(EventQueueTest, ATopicThatIsNamedTwiceGetsOneCopy) {
  EventQueue queue({});
  queue.push(event({"a/", "t/", "a/", "t/"}, "x"));
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_THAT(write(queue), ElementsAre("a/ x1", "t/ x1"));
}

}  // namespace
}  // namespace vigil::actors
