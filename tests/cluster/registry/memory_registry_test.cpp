// The registry in memory when answers are late, lost, or in another order, and what only it can do.
#include "cluster/registry/memory_registry.h"

#include <deque>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/registry/subjects.h"

namespace vigil::cluster::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using Kind = RegistryFailure::Kind;
using Leg = MemoryRegistry::Leg;

/// A client whose steps are run by the test.
class LateRegistryTest : public ::testing::Test {
 protected:
  struct Step {
    Leg leg;
    std::function<void()> run;
  };

  MemoryRegistry::Options options() {
    return {.post =
                [this](Leg leg, std::function<void()> run) {
                  steps_.push_back({leg, std::move(run)});
                },
            .time_limit = 5s};
  }
  /// Runs those of the steps that there are, or loses them.
  void run(Leg leg, bool lose = false) {
    for (Step& step : std::exchange(steps_, {})) {
      if (step.leg != leg)
        steps_.push_back(std::move(step));
      else if (!lose)
        step.run();
    }
  }
  void run_all() {
    while (!steps_.empty()) {
      const Step first = std::move(steps_.front());
      steps_.pop_front();
      first.run();
    }
  }
  void pass(base::Duration time) {
    clock_.move(time);
    registry_.expire();
  }
  void put(const std::string& key) {
    registry_.commit({{}, {RegistryPut{key, "", 0}}}, [this](RegistryResult<RegistryCommit> result) {
      ++answers_;
      committed_ = std::move(result);
    });
  }

  StillClock clock_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(clock_);
  std::deque<Step> steps_;
  MemoryRegistry registry_{store_, clock_, options()};
  int answers_ = 0;
  std::optional<RegistryResult<RegistryCommit>> committed_;
};

TEST_F(LateRegistryTest, AnAnswerThatIsLostIsUnreachableThoughTheChangeWasMade) {
  put("a");
  EXPECT_EQ(store_->header().revision, 1);
  run(Leg::request);
  EXPECT_EQ(store_->header().revision, 2);
  run(Leg::answer, true);
  pass(4999ms);
  EXPECT_EQ(answers_, 0);
  pass(1ms);
  EXPECT_EQ(bad(committed_.value()).text, "registry in memory: no answer within 5s");
  EXPECT_EQ(bad(*committed_).kind, Kind::unreachable);
  pass(60s);
  EXPECT_EQ(answers_, 1);
}

TEST_F(LateRegistryTest, AnAnswerThatIsTooLateIsNoSecondOne) {
  put("a");
  pass(5s);
  EXPECT_EQ(answers_, 1);
  run_all();
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(store_->header().revision, 2) << "the request was late, and came";
}

TEST_F(LateRegistryTest, ARequestThatIsLostChangesNothing) {
  put("a");
  run(Leg::request, true);
  pass(5s);
  EXPECT_EQ(bad(committed_.value()).kind, Kind::unreachable);
  EXPECT_EQ(store_->header().revision, 1);
}

TEST_F(LateRegistryTest, AnswersInAnotherOrderAreOneHistory) {
  std::vector<RegistryHeader> headers;
  for (const std::string key : {"a", "b", "c"})
    registry_.commit({{}, {RegistryPut{key, "", 0}}}, [&](RegistryResult<RegistryCommit> result) {
      headers.push_back(good(std::move(result)).header);
    });
  run(Leg::request);
  std::ranges::reverse(steps_);
  run_all();
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[0].revision, 4);
  EXPECT_EQ(headers[2].revision, 2);
  for (const RegistryHeader& header : headers) EXPECT_EQ(header.history, headers[0].history);
}

TEST_F(LateRegistryTest, NewsThatAreLostOrLateComeInOrderAllTheSame) {
  Seen seen(registry_, "", 2);
  run_all();
  MemoryRegistry writer(store_, clock_);
  Asking ask(writer);
  good(ask.put("a", ""));
  run(Leg::news, true);
  EXPECT_THAT(seen.so_far(), IsEmpty());
  good(ask.put("b", ""));
  run_all();
  EXPECT_THAT(short_form(seen.so_far()), ElementsAre("a=", "b=")) << "the gap was noticed by what came next";
  good(ask.put("c", ""));
  good(ask.put("d", ""));
  std::ranges::reverse(steps_);
  run_all();
  EXPECT_THAT(short_form(seen.so_far()), ElementsAre("a=", "b=", "c=", "d="));
  good(ask.put("e", ""));
  run(Leg::news, true);
  pass(5s);
  run_all();
  EXPECT_THAT(short_form(seen.so_far()), ElementsAre("a=", "b=", "c=", "d=", "e=")) << "by time";
}

TEST_F(LateRegistryTest, AWatchThatTheStoreNeverHeardOfAsksAgain) {
  Seen seen(registry_, "", 2);
  run(Leg::request, true);
  good(Asking(*std::make_unique<MemoryRegistry>(store_, clock_)).put("a", ""));
  pass(5s);
  run_all();
  EXPECT_THAT(short_form(seen.so_far()), ElementsAre("a="));
}

TEST_F(LateRegistryTest, WhatWasForgottenMeanwhileEndsAWatch) {
  Seen seen(registry_, "", 2);
  run_all();
  good(Asking(*std::make_unique<MemoryRegistry>(store_, clock_)).put("a", ""));
  run(Leg::news, true);
  store_->compact(2);
  pass(5s);
  run_all();
  EXPECT_EQ(seen.failure().kind, Kind::compacted);
}

TEST_F(LateRegistryTest, AnAnswerFromBeforeABackupWasRestoredIsNamedSo) {
  put("a");
  run_all();
  const auto backup = store_->backup();
  put("b");
  run(Leg::request);
  store_->restore(backup, 1);
  std::optional<RegistryRange> range;
  registry_.range("", [&](RegistryResult<RegistryRange> result) { range = good(std::move(result)); });
  put("c");
  run_all();
  EXPECT_EQ(good(*committed_).header.history, 1U) << "revision 3 again: nothing was noticed";
  put("d");
  run_all();
  const auto older = store_->backup();
  put("e");
  put("f");
  run_all();
  store_->restore(older, 1);
  registry_.range("", [&](RegistryResult<RegistryRange> result) { range = good(std::move(result)); });
  run_all();
  EXPECT_EQ(range->header.history, 2U);
}

TEST_F(LateRegistryTest, RandomDelaysLossesAndOrdersLoseNoNews) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto store = std::make_shared<MemoryStore>(clock_);
    std::deque<std::function<void()>> steps;
    MemoryRegistry client(
        store, clock_,
        {.post = [&](Leg, std::function<void()> run) { steps.push_back(std::move(run)); }, .time_limit = 5s});
    Seen seen(client, "w", 2);
    int asked = 0, answered = 0;
    const auto run_one = [&](bool lossy) {
      const auto at = steps.begin() + static_cast<std::ptrdiff_t>(random() % steps.size());
      const std::function<void()> step = std::move(*at);
      steps.erase(at);
      if (!lossy || random() % 3 != 0) step();
    };
    for (int i = 0; i < 100; ++i) {
      ++asked;
      client.commit({{}, {RegistryPut{random() % 2 == 0 ? "w" : "x", std::to_string(i), 0}}},
                    [&](const RegistryResult<RegistryCommit>&) { ++answered; });
      while (!steps.empty() && random() % 3 != 0) run_one(true);
      clock_.move(base::Duration(random() % 1000));
      client.expire();
    }
    for (int i = 0; i < 4; ++i) {
      while (!steps.empty()) run_one(false);
      clock_.move(6s);
      client.expire();
    }
    EXPECT_EQ(answered, asked);
    EXPECT_EQ(seen.so_far(), std::get<RegistryNews>(store->changes("w", 2)).events);
  }
}

TEST(MemoryStoreTest, LeasesEndWhenTheClockSaysSoAndSomebodyLooks) {
  StillClock clock;
  MemoryStore store(clock, {.least_ttl = 2s});
  const LeaseId later = good(store.grant(3s)).id;
  const RegistryLease sooner = good(store.grant(1s));
  EXPECT_EQ(sooner.ttl, 2s);
  EXPECT_EQ(good(store.grant(2500ms)).ttl, 3s) << "whole seconds";
  good(store.commit({{}, {RegistryPut{"late", "", later}, RegistryPut{"soon", "", sooner.id}}}));
  clock.move(1999ms);
  store.expire();
  EXPECT_EQ(store.range("").entries.size(), 2U);
  EXPECT_EQ(good(store.keep_alive(later)).ttl, 3s);
  clock.move(1ms);
  EXPECT_EQ(bad(store.keep_alive(sooner.id)).kind, Kind::no_lease)
      << "it has ended though its keys are there yet";
  EXPECT_EQ(store.range("").entries.size(), 2U);
  clock.move(10s);
  store.expire();
  const auto news = std::get<RegistryNews>(store.changes("", 3));
  EXPECT_THAT(short_form(news.events), ElementsAre("-soon", "-late")) << "in the order of their ends";
  EXPECT_EQ(news.header.revision, 4);
}

TEST(MemoryStoreTest, AFullOneOnlyDeletes) {
  StillClock clock;
  MemoryStore store(clock);
  good(store.commit({{}, {RegistryPut{"a", "", 0}}}));
  store.set_full(true);
  EXPECT_EQ(bad(store.commit({{}, {RegistryPut{"b", "", 0}}})).kind, Kind::full);
  EXPECT_EQ(bad(store.commit({{}, {RegistryDelete{"a"}, RegistryPut{"b", "", 0}}})).kind, Kind::full);
  EXPECT_EQ(bad(store.grant(1s)).kind, Kind::full);
  EXPECT_EQ(store.range("").entries.size(), 1U);
  EXPECT_TRUE(good(store.commit({{}, {RegistryDelete{"a"}}})).made);
  store.set_full(false);
  EXPECT_TRUE(good(store.commit({{}, {RegistryPut{"b", "", 0}}})).made);
}

TEST(MemoryStoreTest, RemembersSoManyChangesAndNoMore) {
  StillClock clock;
  MemoryStore store(clock, {.most_changes = 3});
  for (int i = 0; i < 10; ++i) good(store.commit({{}, {RegistryPut{"a", std::to_string(i), 0}}}));
  EXPECT_EQ(bad(store.changes("", 8)).kind, Kind::compacted);
  EXPECT_EQ(good(store.changes("", 9)).events.size(), 3U);
}

TEST(MemoryRegistryTest, MayBeUsedFromManyThreads) {
  StillClock clock;
  const auto store = std::make_shared<MemoryStore>(clock);
  MemoryRegistry registry(store, clock);
  Seen seen(registry, "", 2);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 200; ++i)
          registry.commit({{}, {RegistryPut{std::to_string(thread), std::to_string(i), 0}}},
                          [](const auto&) {});
      });
  }
  EXPECT_EQ(seen.until(801), std::get<RegistryNews>(store->changes("", 2)).events);
}

}  // namespace
}  // namespace vigil::cluster::testing
