// The order of live and replayed events: what comes out, whatever comes in between.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/topics/event_ledger.h"

namespace vigil::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TopicMessage event(const std::string& topic, std::uint64_t sequence, std::uint64_t position) {
  return {topic, sequence, topic + std::to_string(sequence), position};
}

ReplayPage page(std::vector<TopicMessage> events, std::uint64_t cursor, bool more = false,
                const std::string& outbox = "A") {
  return {outbox, std::move(events), cursor, more, std::max<std::uint64_t>(cursor, 1)};
}

std::vector<std::string> all(EventLedger& ledger) {
  std::vector<std::string> result;
  while (const auto entry = ledger.take()) {
    if (const auto* message = std::get_if<TopicMessage>(&*entry)) {
      result.push_back(message->body);
    } else if (const auto* missed = std::get_if<Missed>(&*entry)) {
      result.push_back(missed->topic + " misses " + std::to_string(missed->count));
    } else {
      result.emplace_back("restarted");
    }
  }
  return result;
}

class Ledger : public ::testing::Test {
 protected:
  void begin(std::uint64_t newest = 10) { ledger_.page(page({}, newest)); }
  EventLedger ledger_{{}};
};

TEST_F(Ledger, NothingComesOutBeforeItIsKnownWhereTheBeginningIs) {
  ledger_.live(event("a/", 5, 9));
  ledger_.live(event("a/", 6, 11));
  EXPECT_THAT(all(ledger_), IsEmpty());
  EXPECT_TRUE(ledger_.behind());
  EXPECT_EQ(ledger_.cursor(), std::nullopt);
  begin();
  EXPECT_THAT(all(ledger_), ElementsAre("a/5", "a/6")) << "the last value, and what came after it";
  EXPECT_FALSE(ledger_.behind());
}

TEST_F(Ledger, WhatFollowsComesOutAtOnceAndResendsNever) {
  begin();
  ledger_.live(event("a/", 5, 9));
  ledger_.live(event("b/", 1, 11));
  ledger_.live(event("a/", 6, 12));
  ledger_.live(event("a/", 6, 12));
  ledger_.live(event("a/", 5, 9));
  EXPECT_THAT(all(ledger_), ElementsAre("a/5", "b/1", "a/6"));
  EXPECT_FALSE(ledger_.behind());
}

TEST_F(Ledger, AGapHoldsItsTopicBackUntilItIsFilled) {
  begin();
  ledger_.live(event("a/", 5, 9));
  ledger_.live(event("a/", 8, 14));
  ledger_.live(event("b/", 1, 15));
  EXPECT_THAT(all(ledger_), ElementsAre("a/5", "b/1")) << "another topic goes on";
  EXPECT_TRUE(ledger_.behind());
  EXPECT_EQ(ledger_.cursor(), 10U);
  ledger_.page(page({event("a/", 6, 11), event("a/", 7, 13)}, 13, true));
  EXPECT_TRUE(ledger_.behind());
  ledger_.page(page({event("a/", 8, 14), event("b/", 1, 15)}, 15));
  EXPECT_THAT(all(ledger_), ElementsAre("a/6", "a/7", "a/8"));
  EXPECT_FALSE(ledger_.behind());
}

TEST_F(Ledger, ATopicsFirstEventsAreMissedToo) {
  begin();
  ledger_.live(event("new/", 3, 14));
  EXPECT_THAT(all(ledger_), IsEmpty());
  ledger_.page(page({event("new/", 1, 12), event("new/", 2, 13), event("new/", 3, 14)}, 14));
  EXPECT_THAT(all(ledger_), ElementsAre("new/1", "new/2", "new/3"));
}

TEST_F(Ledger, AnEventThatIsNewerThanThePageAsksForAnother) {
  begin();
  ledger_.live(event("a/", 5, 9));
  ledger_.live(event("a/", 8, 14));
  ledger_.page(page({event("a/", 6, 11)}, 12));
  EXPECT_TRUE(ledger_.behind());
  EXPECT_THAT(all(ledger_), ElementsAre("a/5", "a/6"));
  ledger_.page(page({event("a/", 7, 13), event("a/", 8, 14)}, 14));
  EXPECT_THAT(all(ledger_), ElementsAre("a/7", "a/8"));
}

TEST_F(Ledger, WhatWasForgottenIsTold) {
  begin();
  ledger_.live(event("a/", 5, 9));
  ledger_.live(event("a/", 9, 20));
  ledger_.page(page({event("a/", 8, 19)}, 20));
  EXPECT_THAT(all(ledger_), ElementsAre("a/5", "a/ misses 2", "a/8", "a/9"))
      << "the last is published, and already forgotten";
}

TEST_F(Ledger, EventsOfThePastComeInPagesBeforeWhatIsLive) {
  EventLedger ledger({.last_values = false});
  ledger.live(event("a/", 9, 30));
  ledger.live(event("old/", 2, 3));
  ledger.page(page({event("a/", 7, 12)}, 20, true));
  ledger.live(event("a/", 10, 31));
  EXPECT_THAT(all(ledger), ElementsAre("a/7"));
  ledger.page(page({event("a/", 8, 25), event("a/", 9, 30)}, 30));
  EXPECT_THAT(all(ledger), ElementsAre("a/8", "a/9", "a/10"));
  ledger.live(event("old/", 3, 33));
  EXPECT_THAT(all(ledger), ElementsAre("old/3")) << "its last event was older than what was asked for";
}

TEST_F(Ledger, ANewOutboxIsToldAndSeenFromItsBeginning) {
  begin();
  ledger_.live(event("a/", 5, 9));
  ledger_.live(event("a/", 2, 2));  // of the new outbox, but that is not known yet
  EXPECT_THAT(all(ledger_), ElementsAre("a/5"));
  ledger_.page(page({}, 10, false, "B"));
  EXPECT_THAT(all(ledger_), ElementsAre("restarted"));
  EXPECT_TRUE(ledger_.behind());
  EXPECT_EQ(ledger_.cursor(), 0U);
  ledger_.page(page({event("a/", 1, 1), event("a/", 2, 2)}, 2, false, "B"));
  EXPECT_THAT(all(ledger_), ElementsAre("a/1", "a/2"));
}

TopicMessage cloud_event(const std::string& topic, std::uint64_t sequence, std::uint64_t position,
                         const std::string& id) {
  return {topic, sequence, R"({"source":"s","id":")" + id + R"(","seq":)" + std::to_string(sequence) + '}',
          position};
}

std::vector<std::string> ids(EventLedger& ledger) {
  std::vector<std::string> result;
  while (const auto entry = ledger.take())
    if (const auto* message = std::get_if<TopicMessage>(&*entry))
      result.push_back(message->topic + message->body.substr(20, message->body.find(',', 20) - 21));
  return result;
}

TEST_F(Ledger, WhatAnotherOutboxHasOfTheOneBeforeComesOutOnce) {
  begin();
  ledger_.live(cloud_event("a/", 5, 9, "X"));
  ledger_.live(cloud_event("b/", 2, 10, "X"));
  ledger_.live(cloud_event("a/", 6, 12, "Y"));
  EXPECT_THAT(ids(ledger_), ElementsAre("a/X", "b/X", "a/Y")) << "on each of its topics";
  // The number follows, but it is another outbox's, which is not known yet.
  ledger_.live(cloud_event("a/", 7, 13, "Z"));
  ledger_.page(page({}, 12, false, "B"));
  EXPECT_FALSE(ledger_.begun());
  ledger_.live(cloud_event("a/", 9, 15, "V"));
  EXPECT_THAT(ids(ledger_), ElementsAre("a/Z"));
  ledger_.page(page({cloud_event("a/", 5, 9, "X"), cloud_event("a/", 6, 12, "W"),
                     cloud_event("a/", 7, 13, "Z"), cloud_event("a/", 8, 14, "U")},
                    14, false, "B"));
  EXPECT_THAT(ids(ledger_), ElementsAre("a/W", "a/U", "a/V")) << "new ones under old numbers are new";
}

TEST(SeenIdsTest, RemembersABoundedNumber) {
  SeenIds seen(2);
  EXPECT_TRUE(seen.add(cloud_event("a/", 1, 1, "X")));
  EXPECT_FALSE(seen.add(cloud_event("a/", 2, 2, "X")));
  EXPECT_TRUE(seen.add(cloud_event("a/", 3, 3, "Y")));
  EXPECT_TRUE(seen.add(cloud_event("a/", 4, 4, "Z")));
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen.add(cloud_event("a/", 5, 5, "X"))) << "forgotten";
  for (const char* body : {"", "[]", "{}", "nothing", R"({"id":"X"})", R"({"source":1,"id":2})"}) {
    EXPECT_TRUE(seen.add({"a/", 1, body, 1})) << body;
    EXPECT_TRUE(seen.add({"a/", 1, body, 1})) << body;
  }
}

TEST_F(Ledger, AnOlderCopyOfTheOutboxIsAnotherOutbox) {
  begin(50);
  ReplayPage back = page({}, 50);
  back.newest = 20;
  ledger_.page(back);
  EXPECT_THAT(all(ledger_), ElementsAre("restarted"));
}

TEST_F(Ledger, WithoutReplayEventsComeOutAllTheSame) {
  ledger_.live(event("a/", 5, 9));
  ledger_.live(event("a/", 8, 14));
  ledger_.give_up();
  EXPECT_THAT(all(ledger_), ElementsAre("a/5", "a/ misses 2", "a/8"));
  ledger_.live(event("b/", 7, 15));
  ledger_.live(event("b/", 9, 17));
  EXPECT_THAT(all(ledger_), ElementsAre("b/7", "b/ misses 1", "b/9"));
  // It comes back.
  begin(17);
  ledger_.live(event("b/", 11, 19));
  EXPECT_THAT(all(ledger_), IsEmpty());
  ledger_.page(page({event("b/", 10, 18), event("b/", 11, 19)}, 19));
  EXPECT_THAT(all(ledger_), ElementsAre("b/10", "b/11"));
}

TEST_F(Ledger, WhatWaitsIsBoundedAndComesWithAPage) {
  EventLedger ledger({.last_values = true, .waiting = 2});
  ledger.page(page({}, 10));
  std::vector<TopicMessage> events;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    events.push_back(event("a/", i, 10 + i));
    if (i > 1) ledger.live(events.back());
  }
  EXPECT_EQ(ledger.waiting(), 2U);
  EXPECT_TRUE(ledger.behind());
  ledger.page(page(events, 16));
  EXPECT_THAT(all(ledger), ElementsAre("a/1", "a/2", "a/3", "a/4", "a/5", "a/6"));
  EXPECT_FALSE(ledger.behind());
}

// Live events get lost, come twice and out of order with the answers; queries are answered from the log as it
// stands. Whatever happens, each event comes out once and in order.
TEST(Ledgers, LoseAndRepeatNothing) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    EventLedger ledger({.last_values = true, .waiting = random() % 8});
    std::vector<TopicMessage> log;
    std::map<std::string, std::uint64_t> sequences;
    std::map<std::string, std::vector<std::string>> expected;
    std::map<std::string, std::vector<std::string>> seen;
    const auto publish = [&] {
      const std::string topic(1, static_cast<char>('a' + random() % 3));
      log.push_back(event(topic, ++sequences[topic], log.size() + 1));
      expected[topic].push_back(log.back().body);
    };
    const auto answer = [&](std::size_t limit) {
      ReplayPage result{"A", {}, ledger.cursor().value_or(log.size()), false, log.size()};
      while (result.cursor < log.size() && result.events.size() < limit) {
        result.events.push_back(log[result.cursor++]);
      }
      result.more = result.cursor < log.size();
      return result;
    };
    ledger.page(answer(1));
    for (int step = 0; step < 200; ++step) {
      switch (random() % 5) {
        case 0:
        case 1:
          publish();
          if (random() % 3 != 0) ledger.live(log.back());
          break;
        case 2:
          if (!log.empty()) ledger.live(log[random() % log.size()]);
          break;
        case 3: {
          // The answer to a query that was on its way while others were published.
          const ReplayPage late = answer(1 + random() % 4);
          for (std::uint64_t i = random() % 3; i > 0; --i) {
            publish();
            ledger.live(log.back());
          }
          ledger.page(late);
          break;
        }
        default:
          while (const auto entry = ledger.take()) {
            const auto* message = std::get_if<TopicMessage>(&*entry);
            ASSERT_NE(message, nullptr) << "seed " << seed;
            seen[message->topic].push_back(message->body);
          }
      }
    }
    do {
      ledger.page(answer(3));
    } while (ledger.behind());
    while (const auto entry = ledger.take()) {
      seen[std::get<TopicMessage>(*entry).topic].push_back(std::get<TopicMessage>(*entry).body);
    }
    ASSERT_EQ(seen, expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vigil::cluster
