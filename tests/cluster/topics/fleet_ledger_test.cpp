// One follower of several servers that have the same events in orders of their own: what comes out, wherever
// it goes on.
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
  const std::string name = topic + std::to_string(sequence);
  return {topic, sequence, R"({"source":"s","id":")" + name + R"("})", position};
}

ReplayPage page(std::vector<TopicMessage> events, std::uint64_t cursor, bool more = false,
                const std::string& outbox = "A") {
  return {outbox, std::move(events), cursor, more, std::max<std::uint64_t>(cursor, outbox == "B" ? 700 : 1)};
}

std::string name_of(const TopicMessage& message) {
  return message.topic + std::to_string(message.sequence);
}

std::vector<std::string> all(EventLedger& ledger) {
  std::vector<std::string> result;
  while (const auto entry = ledger.take()) {
    if (const auto* message = std::get_if<TopicMessage>(&*entry)) {
      result.push_back(name_of(*message));
    } else if (const auto* missed = std::get_if<Missed>(&*entry)) {
      result.push_back(missed->topic + " misses " + std::to_string(missed->count));
    } else {
      result.emplace_back("restarted");
    }
  }
  return result;
}

class FleetLedger : public ::testing::Test {
 protected:
  FleetLedger() {
    ledger_.page(page({}, 10));
    ledger_.live(event("a/", 5, 9));
    ledger_.live(event("b/", 1, 11));
    EXPECT_THAT(all(ledger_), ElementsAre("a/5", "b/1"));
  }
  EventLedger ledger_{{.fleet = true}};
};

TEST_F(FleetLedger, WhereNothingIsMissingNothingIsAskedFor) {
  ledger_.move();
  EXPECT_TRUE(ledger_.moved());
  EXPECT_FALSE(ledger_.begun());
  EXPECT_EQ(ledger_.cursor(), std::nullopt) << "it begins at the newest";
  ledger_.page(page({}, 700, false, "B"));
  ledger_.live(event("a/", 5, 650));
  ledger_.live(event("b/", 1, 620));
  EXPECT_EQ(ledger_.gap(), nullptr);
  EXPECT_FALSE(ledger_.behind());
  ledger_.live(event("a/", 6, 701));
  EXPECT_THAT(all(ledger_), ElementsAre("a/6")) << "and nothing twice";
}

TEST_F(FleetLedger, WhatTheNextOneHasBeyondIsAskedForByItsNumbers) {
  ledger_.move();
  ledger_.page(page({}, 700, false, "B"));
  ledger_.live(event("a/", 9, 690));
  ledger_.live(event("b/", 2, 620));
  ASSERT_NE(ledger_.gap(), nullptr);
  EXPECT_EQ(ledger_.gap()->topic, "a/");
  EXPECT_EQ(ledger_.gap()->from, 6U);
  EXPECT_EQ(ledger_.gap()->to, 8U);
  EXPECT_EQ(ledger_.gap()->after, std::nullopt);
  EXPECT_TRUE(ledger_.behind());
  ledger_.live(event("a/", 10, 701));
  ledger_.gap_page(page({event("a/", 6, 500), event("a/", 7, 550)}, 560, true, "B"));
  ASSERT_NE(ledger_.gap(), nullptr);
  EXPECT_EQ(ledger_.gap()->after, 560U);
  EXPECT_THAT(all(ledger_), ElementsAre("b/2", "a/6", "a/7"));
  ledger_.gap_page(page({event("a/", 8, 600), event("a/", 9, 690)}, 690, true, "B"));
  EXPECT_EQ(ledger_.gap(), nullptr);
  EXPECT_THAT(all(ledger_), ElementsAre("a/8", "a/9", "a/10"));
}

TEST_F(FleetLedger, WhatTheNextOneHasForgottenIsTold) {
  ledger_.move();
  ledger_.page(page({}, 700, false, "B"));
  ledger_.live(event("a/", 9, 690));
  ledger_.gap_page(page({event("a/", 8, 600)}, 700, false, "B"));
  EXPECT_THAT(all(ledger_), ElementsAre("a/ misses 2", "a/8", "a/9"));
  ledger_.move();
  ledger_.page(page({}, 40, false, "A"));
  ledger_.live(event("b/", 6, 30));
  ledger_.gap_page(page({}, 40, false, "A"));
  EXPECT_THAT(all(ledger_), ElementsAre("b/ misses 4", "b/6")) << "all of it";
}

TEST_F(FleetLedger, ATopicThatIsNewThereIsReadFromItsBeginning) {
  ledger_.move();
  ledger_.page(page({}, 700, false, "B"));
  ledger_.live(event("new/", 1, 650));
  ledger_.live(event("newer/", 3, 660));
  EXPECT_THAT(all(ledger_), ElementsAre("new/1"));
  ASSERT_NE(ledger_.gap(), nullptr);
  EXPECT_EQ(ledger_.gap()->from, std::nullopt) << "as far as it is wanted";
  ledger_.gap_page(page({event("newer/", 1, 651), event("newer/", 2, 655)}, 655, true, "B"));
  EXPECT_THAT(all(ledger_), ElementsAre("newer/1", "newer/2", "newer/3"));
  ledger_.live(event("old/", 500, 10));
  ledger_.gap_page(page({}, 700, false, "B"));
  EXPECT_THAT(all(ledger_), ElementsAre("old/500"))
      << "of one without anything that is wanted, the last value";
}

TEST_F(FleetLedger, APageThatShowsAGapGoesOnBehindIt) {
  ledger_.move();
  ledger_.page(page({}, 700, false, "B"));
  // Its last event did not come.
  ledger_.page(page({event("b/", 2, 701), event("a/", 8, 702), event("b/", 3, 703)}, 703, false, "B"));
  EXPECT_THAT(all(ledger_), ElementsAre("b/2"));
  EXPECT_EQ(ledger_.cursor(), 701U);
  ASSERT_NE(ledger_.gap(), nullptr);
  ledger_.gap_page(page({event("a/", 6, 600), event("a/", 7, 610), event("a/", 8, 702)}, 702, false, "B"));
  EXPECT_TRUE(ledger_.behind());
  ledger_.page(page({event("a/", 8, 702), event("b/", 3, 703)}, 703, false, "B"));
  EXPECT_THAT(all(ledger_), ElementsAre("a/6", "a/7", "a/8", "b/3"));
  EXPECT_FALSE(ledger_.behind());
}

TEST_F(FleetLedger, AServerThatIsBehindShowsNothingAgain) {
  ledger_.move();
  ledger_.page(page({}, 700, false, "B"));
  ledger_.live(event("a/", 3, 650));
  ledger_.live(event("a/", 4, 701));
  ledger_.live(event("a/", 5, 702));
  ledger_.live(event("a/", 6, 703));
  EXPECT_THAT(all(ledger_), ElementsAre("a/6"));
  EXPECT_FALSE(ledger_.behind());
}

TEST_F(FleetLedger, AnotherOutboxOfTheSameServerIsOneMoreServer) {
  EXPECT_TRUE(ledger_.page(page({}, 3, false, "A2"))) << "live events have to be asked for anew";
  EXPECT_FALSE(ledger_.page(page({}, 3, false, "A2")));
  ledger_.live(event("a/", 6, 2));
  EXPECT_THAT(all(ledger_), ElementsAre("a/6")) << "and nothing is read from its beginning";
  ReplayPage back = page({}, 3, false, "A2");
  back.newest = 1;
  EXPECT_TRUE(ledger_.page(back)) << "an older copy of it";
  ledger_.page(page({}, 1, false, "A2"));
  ledger_.live(event("a/", 8, 1));
  ASSERT_NE(ledger_.gap(), nullptr);
  EXPECT_TRUE(ledger_.gap_page(page({}, 1, false, "A3"))) << "also while a gap is asked for";
  EXPECT_EQ(ledger_.gap(), nullptr);
}

TEST_F(FleetLedger, NumbersThatAreGivenAnewAreRead) {
  ledger_.live(event("a/", 6, 12));
  ledger_.live(event("a/", 4, 13));
  EXPECT_THAT(all(ledger_), ElementsAre("a/6")) << "a late one from before the beginning is none";
  TopicMessage other = event("a/", 5, 14);
  other.body = R"({"source":"s","id":"another"})";
  ledger_.live(other);
  EXPECT_THAT(all(ledger_), ElementsAre("restarted"));
  EXPECT_EQ(ledger_.cursor(), 0U);
  ledger_.page(page({event("a/", 4, 2), other}, 14));
  EXPECT_THAT(all(ledger_), ElementsAre("a/4", "a/5"));
}

TEST_F(FleetLedger, WhileThePastIsReadItIsReadAnewElsewhere) {
  EventLedger ledger({.last_values = false, .fleet = true});
  ledger.page(page({event("a/", 1, 1), event("a/", 2, 3)}, 3, true));
  EXPECT_THAT(all(ledger), ElementsAre("a/1", "a/2"));
  ledger.move();
  EXPECT_FALSE(ledger.moved());
  EXPECT_EQ(ledger.cursor(), std::nullopt);
  ledger.page(page({event("b/", 1, 1), event("a/", 1, 2)}, 2, true, "B"));
  ledger.page(page({event("a/", 2, 3), event("a/", 3, 4)}, 4, false, "B"));
  EXPECT_THAT(all(ledger), ElementsAre("b/1", "a/3"));
  EXPECT_TRUE(ledger.begun());
}

/// What one server has committed, later than others or before them.
struct Server {
  std::string outbox;
  std::vector<TopicMessage> log;
  std::map<std::string, std::uint64_t> sequences;

  const TopicMessage& commit(const std::string& topic) {
    log.push_back(event(topic, ++sequences[topic], log.size() + 1));
    return log.back();
  }
  ReplayPage answer(std::uint64_t after, std::size_t limit, const std::string& topic = "") const {
    ReplayPage result{outbox, {}, after, false, log.size()};
    while (result.cursor < log.size() && result.events.size() < limit) {
      const TopicMessage& next = log[result.cursor++];
      if (next.topic.starts_with(topic)) result.events.push_back(next);
    }
    result.more = result.cursor < log.size();
    return result;
  }
  ReplayPage answer(const Gap& gap, std::size_t limit) const {
    if (gap.after) return answer(*gap.after, limit, gap.topic);
    const auto first = std::find_if(log.begin(), log.end(), [&](const TopicMessage& each) {
      return each.topic == gap.topic && each.sequence >= gap.from.value_or(1);
    });
    return answer(first == log.end() ? log.size() : first->position - 1, limit, gap.topic);
  }
};

// Live events get lost, servers are ahead and behind, and it goes on elsewhere at any moment. Whatever
// happens, each event comes out once and in order.
TEST(FleetLedgers, LoseAndRepeatNothingWhereverTheyGoOn) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    EventLedger ledger({.last_values = true, .waiting = 4 + random() % 8, .fleet = true});
    std::vector<Server> servers = {{"A", {}, {}}, {"B", {}, {}}, {"C", {}, {}}};
    std::map<std::string, std::uint64_t> told;
    std::map<std::string, std::vector<std::string>> expected;
    std::map<std::string, std::vector<std::string>> seen;
    std::size_t at = 0;
    bool subscribed = true;
    const auto topic = [&] { return std::string(1, static_cast<char>('a' + random() % 3)) + '/'; };
    const auto commit = [&](std::size_t server, const std::string& name) {
      if (servers[server].sequences[name] == told[name]) return;
      const TopicMessage& event = servers[server].commit(name);
      if (server == at && subscribed && random() % 3 != 0) ledger.live(event);
    };
    const auto answer = [&] {
      const Server& server = servers[at];
      const std::size_t limit = 1 + random() % 4;
      if (const Gap* gap = ledger.gap()) {
        ASSERT_FALSE(ledger.gap_page(server.answer(*gap, limit)));
      } else {
        ASSERT_FALSE(ledger.page(server.answer(ledger.cursor().value_or(server.log.size()), limit)));
      }
      if (subscribed || !ledger.begun()) return;
      subscribed = true;
      // Some of the last events get lost, too.
      for (const auto& [name, last] : server.sequences)
        if (last > 0 && random() % 8 != 0)
          ledger.live(*std::find_if(server.log.begin(), server.log.end(), [&](const TopicMessage& each) {
            return each.topic == name && each.sequence == last;
          }));
    };
    const auto take = [&] {
      while (const auto entry = ledger.take()) {
        const auto* message = std::get_if<TopicMessage>(&*entry);
        ASSERT_NE(message, nullptr) << "seed " << seed;
        seen[message->topic].push_back(name_of(*message));
      }
    };
    answer();
    for (int step = 0; step < 300; ++step) {
      const std::string name = topic();
      switch (random() % 8) {
        case 0:
        case 1:
          expected[name].push_back(name + std::to_string(++told[name]));
          break;
        case 2:
        case 3:
        case 4:
          commit(random() % servers.size(), name);
          break;
        case 5:
        case 6:
          answer();
          break;
        default:
          if (random() % 6 != 0) break;
          at = (at + 1) % servers.size();
          ledger.move();
          subscribed = false;
      }
      take();
    }
    // The topics go on, which shows what got lost.
    for (const std::string name : {"a/", "b/", "c/"}) {
      expected[name].push_back(name + std::to_string(++told[name]));
      for (std::size_t server = 0; server < servers.size(); ++server)
        while (servers[server].sequences[name] < told[name]) commit(server, name);
    }
    do {
      answer();
    } while (ledger.behind());
    for (const std::string name : {"a/", "b/", "c/"}) {
      expected[name].push_back(name + std::to_string(++told[name]));
      while (servers[at].sequences[name] < told[name]) commit(at, name);
    }
    do {
      answer();
    } while (ledger.behind() || ledger.cursor() != servers[at].log.size());
    take();
    ASSERT_EQ(seen, expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vigil::cluster
