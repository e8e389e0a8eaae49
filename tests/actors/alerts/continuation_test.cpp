// Topics whose numbers others give, too: the same suite for all outboxes, and a process that is killed.
#include <functional>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include "actors/alerts/fallback_outbox.h"
#include "actors/alerts/outbox.h"
#include "tests/actors/outboxes.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using testing::all_events;
using ::testing::ElementsAre;
using testing::event;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::query;
using testing::run_and_kill;
using testing::shown;

class ContinuationTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Outbox> disk() {
    if (!disk_works_) throw OutboxError("outbox: no disk");
    return open_rocksdb_outbox(folder_.outbox(), ages_);
  }
  std::unique_ptr<Outbox> make() {
    const std::string kind = GetParam();
    if (kind == "memory") return make_memory_outbox(&ages_);
    if (kind == "rocksdb") return disk();
    disk_works_ = kind == "fallback";
    return make_fallback_outbox({.open = [this] { return disk(); }, .given_numbers = true}, ages_, clock_,
                                metrics_, logger_);
  }
  std::vector<std::string> all() const { return shown(outbox_->replay(query({""})).events); }

  bool disk_works_ = true;
  testing::OutboxClock clock_;
  config::RetentionClock ages_{clock_};
  Metrics metrics_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  testing::OutboxFolder folder_;
  std::unique_ptr<Outbox> outbox_ = make();
};

TEST_P(ContinuationTest, ATopicGoesOnAboveWhatIsHere) {
  for (std::uint64_t i = 1; i <= 2; ++i) outbox_->append(event("a/", i));
  outbox_->append(event("a/b/", 1));
  outbox_->acknowledge(1);
  outbox_->continue_from("a/", 10);
  EXPECT_EQ(outbox_->last_sequence("a/"), 10U);
  EXPECT_EQ(outbox_->last_sequence("a/b/"), 1U);
  EXPECT_THROW(outbox_->append(event("a/", 3)), std::invalid_argument);
  EXPECT_EQ(outbox_->append(event("a/", 11)), 4U);
  EXPECT_THAT(all(), ElementsAre("1:a/#1@0", "2:a/#2@0", "3:a/b/#1@0", "4:a/#11@0"));
  EXPECT_THAT(shown(outbox_->unacknowledged(9)), ElementsAre("2:a/#2@0", "3:a/b/#1@0", "4:a/#11@0"));
  EXPECT_EQ(outbox_->position_of("a/", 3), 4U) << "the first one from there on";
  EXPECT_THAT(shown(outbox_->last_events(2)), ElementsAre("4:a/#11@0", "3:a/b/#1@0"))
      << "as many as are kept of the last";
}

TEST_P(ContinuationTest, ATopicGoesOnBelowWhatIsHere) {
  for (std::uint64_t i = 1; i <= 4; ++i) outbox_->append(event("a/", i));
  outbox_->append(event("a/b/", 1));
  outbox_->append(event("b/", 1));
  outbox_->acknowledge(4);
  outbox_->continue_from("a/", 2);
  EXPECT_EQ(outbox_->last_sequence("a/"), 2U);
  EXPECT_THAT(all(), ElementsAre("1:a/#1@0", "2:a/#2@0", "5:a/b/#1@0", "6:b/#1@0"))
      << "acknowledged or not, and no other topic's";
  EXPECT_EQ(outbox_->append(event("a/", 3)), 7U) << "no position is given twice";
  EXPECT_THAT(shown(outbox_->unacknowledged(9)),
              ElementsAre("1:a/#1@0", "2:a/#2@0", "5:a/b/#1@0", "6:b/#1@0", "7:a/#3@0"));
  EXPECT_EQ(outbox_->position_of("a/", 3), 7U);
  outbox_->continue_from("a/", 3);
  outbox_->continue_from("a/", 3);
  EXPECT_EQ(outbox_->append(event("a/", 4)), 8U) << "again is no error";
}

TEST_P(ContinuationTest, WhatDoesNotStayGoesAndEventsAndNotesComeWithIt) {
  for (std::uint64_t i = 1; i <= 3; ++i) outbox_->append(event("a/", i));
  outbox_->append(event("b/", 1));
  const std::vector<Continuation> topics = {{"a/", 10, 1}, {"new/", 4}};
  const std::vector<OutboxEvent> events = {event("a/", 11), event("new/", 5), event("b/", 2)};
  const std::vector<OutboxNote> notes = {{"tenure/a", "7"}};
  const std::vector<OutboxEvent> gap = {event("a/", 12)};
  EXPECT_THROW(outbox_->continue_from(topics, gap, notes), std::invalid_argument);
  EXPECT_THAT(all(), ElementsAre("1:a/#1@0", "2:a/#2@0", "3:a/#3@0", "4:b/#1@0")) << "all or nothing";
  EXPECT_THAT(outbox_->notes(), IsEmpty());
  EXPECT_EQ(outbox_->last_sequence("a/"), 3U);

  EXPECT_EQ(outbox_->continue_from(topics, events, notes), 5U);
  EXPECT_THAT(all(), ElementsAre("1:a/#1@0", "4:b/#1@0", "5:a/#11@0", "6:new/#5@0", "7:b/#2@0"));
  EXPECT_THAT(outbox_->notes(), ElementsAre(Pair("tenure/a", "7")));
  EXPECT_EQ(outbox_->last_sequence("a/"), 11U);
  EXPECT_EQ(outbox_->last_sequence("new/"), 5U);
  // In doubt it is done again.
  EXPECT_EQ(outbox_->continue_from(topics, std::vector{event("a/", 11)}, notes), 8U);
  EXPECT_THAT(all(), ElementsAre("1:a/#1@0", "4:b/#1@0", "7:b/#2@0", "8:a/#11@0"));
  EXPECT_EQ(outbox_->last_sequence("new/"), 4U);
}

TEST_P(ContinuationTest, ATopicGoesOnMoreThanOnceInOneWrite) {
  for (std::uint64_t i = 1; i <= 3; ++i) outbox_->append(event("a/", i));
  const std::vector<Continuation> topics = {{"a/", 2}, {"b/", 1}, {"a/", 6}, {"a/", 9}, {"b/", 4}};
  const std::vector<OutboxEvent> events = {event("a/", 3), event("b/", 2), event("a/", 7), event("a/", 10)};
  for (const std::uint64_t unsaid : {4U, 6U, 8U, 9U, 11U}) {
    const std::vector<OutboxEvent> gap = {event("a/", 3), event("a/", unsaid), event("a/", unsaid + 2)};
    EXPECT_THROW(outbox_->continue_from(topics, gap, {}), std::invalid_argument) << unsaid;
  }
  const std::vector<Continuation> down = {{"a/", 6}, {"a/", 2}};
  EXPECT_THROW(outbox_->continue_from(down, {}, {}), std::invalid_argument);
  EXPECT_THAT(all(), ElementsAre("1:a/#1@0", "2:a/#2@0", "3:a/#3@0"));

  outbox_->continue_from(topics, events, {});
  EXPECT_THAT(all(), ElementsAre("1:a/#1@0", "2:a/#2@0", "4:a/#3@0", "5:b/#2@0", "6:a/#7@0", "7:a/#10@0"));
  EXPECT_EQ(outbox_->last_sequence("a/"), 10U);
  EXPECT_EQ(outbox_->last_sequence("b/"), 4U) << "without an event behind the last one";
}

TEST_P(ContinuationTest, WhatWasForgottenTakesNothingWithItThatHasItsNumberNow) {
  for (std::uint64_t i = 1; i <= 3; ++i) outbox_->append(event("a/", i));
  clock_.passed += 10h;
  EXPECT_EQ(outbox_->prune(1h), 0U) << "passed over: nobody has seen them";
  outbox_->continue_from("a/", 1);
  for (std::uint64_t i = 2; i <= 4; ++i) outbox_->append(event("a/", i));
  outbox_->acknowledge(std::vector<std::uint64_t>{1, 2, 3, 4, 5});
  EXPECT_EQ(outbox_->prune(1h), 1U);
  EXPECT_THAT(all(), ElementsAre("4:a/#2@0", "5:a/#3@0", "6:a/#4@0"));
  EXPECT_EQ(outbox_->position_of("a/", 2), 4U);
  EXPECT_THAT(shown(outbox_->last_events(9)), ElementsAre("4:a/#2@0", "5:a/#3@0", "6:a/#4@0"));
}

TEST_P(ContinuationTest, WaitingEventsAreReadFromAPositionOn) {
  for (std::uint64_t i = 1; i <= 5; ++i) outbox_->append(event("a/", i));
  outbox_->acknowledge(std::vector<std::uint64_t>{1, 4});
  EXPECT_THAT(shown(outbox_->unacknowledged_after(0, 9)), ElementsAre("2:a/#2@0", "3:a/#3@0", "5:a/#5@0"));
  EXPECT_THAT(shown(outbox_->unacknowledged_after(2, 1)), ElementsAre("3:a/#3@0"));
  EXPECT_THAT(shown(outbox_->unacknowledged_after(3, 9)), ElementsAre("5:a/#5@0"));
  EXPECT_THAT(shown(outbox_->unacknowledged_after(5, 9)), IsEmpty());
  EXPECT_THAT(shown(outbox_->unacknowledged(9)), ElementsAre("2:a/#2@0", "3:a/#3@0", "5:a/#5@0"))
      << "looking further passes over nothing";
}

INSTANTIATE_TEST_SUITE_P(All, ContinuationTest,
                         ::testing::Values("memory", "rocksdb", "fallback", "without_disk"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Continuations, GiveTheSameOnDiskAndInMemory) {
  const testing::OutboxFolder folder;
  testing::OutboxClock clock;
  config::RetentionClock ages(clock);
  const auto memory = make_memory_outbox(&ages);
  auto rocksdb = open_rocksdb_outbox(folder.outbox(), ages);
  std::mt19937_64 random(7);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  for (int step = 0; step < 600; ++step) {
    const std::string topic = "alert/t/" + std::to_string(draw(3)) + '/';
    switch (draw(8)) {
      case 0:
      case 1:
      case 2: {
        const OutboxEvent next = event(topic, memory->last_sequence(topic) + 1);
        ASSERT_EQ(memory->append(next), rocksdb->append(next));
        break;
      }
      case 3: {
        const std::uint64_t last = memory->last_sequence(topic) + draw(6);
        const Continuation at{topic, last < 4 ? 0 : last - 4, last < 2 ? 0 : last - draw(3)};
        std::vector<OutboxEvent> events;
        for (std::uint64_t i = 1; i <= draw(3); ++i) events.push_back(event(topic, at.last + i));
        ASSERT_EQ(memory->continue_from(std::span(&at, 1), events, {}),
                  rocksdb->continue_from(std::span(&at, 1), events, {}));
        break;
      }
      case 4:
      case 5: {
        const std::uint64_t position = draw(900);
        memory->acknowledge(position);
        rocksdb->acknowledge(position);
        break;
      }
      case 6: {
        clock.passed += std::chrono::minutes(draw(20));
        const auto age = std::chrono::minutes(draw(100));
        ASSERT_EQ(memory->prune(age), rocksdb->prune(age));
        break;
      }
      default:
        if (draw(20) == 0) {
          rocksdb.reset();
          rocksdb = open_rocksdb_outbox(folder.outbox(), ages);
        }
    }
    ASSERT_EQ(memory->last_sequence(topic), rocksdb->last_sequence(topic));
    ASSERT_EQ(shown(memory->replay(query({""})).events), shown(rocksdb->replay(query({""})).events));
    ASSERT_EQ(shown(memory->unacknowledged(20)), shown(rocksdb->unacknowledged(20)));
    const std::uint64_t after = draw(400);
    ASSERT_EQ(shown(memory->unacknowledged_after(after, 5)), shown(rocksdb->unacknowledged_after(after, 5)));
    ASSERT_EQ(shown(memory->last_events(3)), shown(rocksdb->last_events(3)));
    const std::uint64_t sequence = draw(40);
    ASSERT_EQ(memory->position_of(topic, sequence), rocksdb->position_of(topic, sequence));
  }
  EXPECT_THAT(rocksdb->take_notices(), IsEmpty()) << "nothing that was forgotten is missed";
}

TEST(Continuations, SurviveAKill) {
  const testing::OutboxFolder folder;
  testing::OutboxClock clock;
  config::RetentionClock ages(clock);
  const int status = run_and_kill([&] {
    const auto outbox = open_rocksdb_outbox(folder.outbox(), ages);
    for (std::uint64_t i = 1; i <= 5; ++i) outbox->append(event("a/", i));
    outbox->continue_from("b/", 12);
    const Continuation at{"a/", 3};
    outbox->continue_from(std::span(&at, 1), {}, std::vector<OutboxNote>{{"tenure/a", "2"}});
  });
  ASSERT_EQ(status, 0);
  const auto outbox = open_rocksdb_outbox(folder.outbox(), ages);
  EXPECT_THAT(outbox->take_notices(), IsEmpty()) << "what was forgotten is no damage";
  EXPECT_EQ(outbox->last_sequence("a/"), 3U);
  EXPECT_EQ(outbox->last_sequence("b/"), 12U);
  EXPECT_THAT(shown(outbox->unacknowledged(9)), ElementsAre("1:a/#1@0", "2:a/#2@0", "3:a/#3@0"));
  EXPECT_THAT(outbox->notes(), ElementsAre(Pair("tenure/a", "2")));
  EXPECT_EQ(outbox->append(event("a/", 4)), 6U);
}

TEST(Continuations, KeepTheirNumbersOnTheWayFromMemoryToTheDisk) {
  const testing::OutboxFolder folder;
  testing::OutboxClock clock;
  config::RetentionClock ages(clock);
  Metrics metrics;
  spdlog::logger logger{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  const OutboxEvent open{0, "alert/n/gate/r/", 1, testing::kStart,
                         R"({"type":"dev.vigil.alert.v1","id":"E-0","data":{"episode":"E","phase":"new"}})"};
  {
    const auto former = open_rocksdb_outbox(folder.outbox(), ages);
    for (std::uint64_t i = 1; i <= 9; ++i) former->append(event("a/", i));
    former->append(open);
    former->append({}, std::vector<OutboxNote>{{"process", "north"}});
  }
  bool works = false;
  const auto outbox = make_fallback_outbox({.open =
                                                [&] {
                                                  if (!works) throw OutboxError("no disk");
                                                  return open_rocksdb_outbox(folder.outbox(), ages);
                                                },
                                            .given_numbers = true},
                                           ages, clock, metrics, logger);
  outbox->continue_from("a/", 7);
  outbox->append(event("a/", 8));
  outbox->append(event("a/", 9));
  outbox->append(event("b/", 1));
  outbox->acknowledge(1);
  works = true;
  clock.passed += 5s;
  outbox->refresh();
  ReplayQuery rest = query({"a/", "b/"}, 6);
  EXPECT_THAT(shown(outbox->replay(rest).events),
              ElementsAre("7:a/#7@0", "11:a/#8@0", "12:a/#9@0", "13:b/#1@0"));
  EXPECT_EQ(outbox->last_sequence("a/"), 9U);
  EXPECT_EQ(outbox->last_sequence("alert/n/gate/r/"), 1U) << "another one may have it, and tell its end";
  EXPECT_EQ(outbox->last_sequence("process/north/"), 0U);
}

/// A disk with events of a former process, all published, and an outbox in memory until it works.
class JumpingTest : public ::testing::Test {
 protected:
  JumpingTest() {
    for (std::uint64_t i = 1; i <= 9; ++i) kept_->acknowledge(kept_->append(event("a/", i)));
  }
  void works() {
    works_ = true;
    look_again();
  }
  void look_again() {
    clock_.passed += 5s;
    outbox_->refresh();
  }
  std::vector<std::string> all() const { return named(all_events(*outbox_)); }
  std::vector<std::string> waiting() const { return named(outbox_->unacknowledged(99)); }
  /// "TOPIC#SEQUENCE" of each.
  static std::vector<std::string> named(const std::vector<OutboxEvent>& events) {
    std::vector<std::string> names = shown(events);
    for (std::string& name : names)
      name = name.substr(name.find(':') + 1, name.find('@') - name.find(':') - 1);
    return names;
  }
  void tell(const std::string& topic, std::uint64_t sequence, bool published = false) {
    const std::uint64_t position = outbox_->append(event(topic, sequence));
    if (published) outbox_->acknowledge(position);
  }

  bool works_ = false;
  /// Of a disk that has opened: what it does from then on.
  std::function<void(testing::WatchedOutbox&)> trouble_;
  testing::OutboxClock clock_;
  config::RetentionClock ages_{clock_};
  Metrics metrics_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  std::unique_ptr<Outbox> kept_ = make_memory_outbox();
  std::unique_ptr<Outbox> outbox_ =
      make_fallback_outbox({.open =
                                [this] {
                                  if (!works_) throw OutboxError("no disk");
                                  auto disk = std::make_unique<testing::WatchedOutbox>(*kept_);
                                  if (trouble_) trouble_(*disk);
                                  return disk;
                                },
                            .given_numbers = true},
                           ages_, clock_, metrics_, logger_);
};

TEST_F(JumpingTest, NumbersBehindAJumpStayOnTheWayToTheDisk) {
  outbox_->continue_from("a/", 7);
  tell("a/", 8, true);
  outbox_->continue_from("a/", 20);
  tell("a/", 21);
  works();
  EXPECT_EQ(outbox_->last_sequence("a/"), 21U);
  EXPECT_THAT(all(), ElementsAre("a/#1", "a/#2", "a/#3", "a/#4", "a/#5", "a/#6", "a/#7", "a/#8", "a/#21"));
  EXPECT_THAT(waiting(), ElementsAre("a/#21"));
  tell("a/", 22);
}

TEST_F(JumpingTest, WhatWaitsBeforeAJumpIsNotLost) {
  outbox_->continue_from("a/", 7);
  tell("a/", 8);
  tell("b/", 1);
  outbox_->continue_from("a/", 20);
  tell("a/", 21);
  outbox_->continue_from("a/", 30);
  tell("a/", 31);
  works();
  EXPECT_THAT(waiting(), ElementsAre("a/#8", "b/#1", "a/#21", "a/#31"));
  EXPECT_EQ(outbox_->last_sequence("a/"), 31U);
}

TEST_F(JumpingTest, AJumpWithNothingBehindItIsKept) {
  outbox_->continue_from("a/", 7);
  tell("a/", 8);
  outbox_->continue_from("a/", 20);
  outbox_->continue_from("new/", 5);
  works();
  EXPECT_EQ(outbox_->last_sequence("a/"), 20U);
  EXPECT_EQ(outbox_->last_sequence("new/"), 5U);
  EXPECT_THAT(waiting(), ElementsAre("a/#8"));
  tell("a/", 21);
  tell("new/", 6);
}

TEST_F(JumpingTest, WhatTheDiskHadWhereAnotherOneWentOnIsForgotten) {
  outbox_->continue_from("a/", 7);
  outbox_->continue_from("a/", 20);
  works();
  EXPECT_EQ(outbox_->last_sequence("a/"), 20U);
  EXPECT_THAT(all(), ElementsAre("a/#1", "a/#2", "a/#3", "a/#4", "a/#5", "a/#6", "a/#7"))
      << "#8 and #9 may be somebody else's";
}

TEST_F(JumpingTest, AJumpDownForgetsInMemoryAndOnTheDisk) {
  outbox_->continue_from("a/", 20);
  tell("a/", 21);
  const Continuation down{"a/", 12, 3};
  outbox_->continue_from(std::span(&down, 1), {}, {});
  tell("a/", 13);
  works();
  EXPECT_THAT(all(), ElementsAre("a/#1", "a/#2", "a/#3", "a/#13"));
}

TEST_F(JumpingTest, WhatMemoryForgotDoesNotMoveOthers) {
  outbox_->continue_from("a/", 7);
  tell("a/", 8);
  tell("a/", 9, true);
  tell("a/", 10);
  clock_.passed += 10h;
  ASSERT_EQ(outbox_->prune(1h), 1U) << "#9, since #8 waits";
  works();
  EXPECT_THAT(waiting(), ElementsAre("a/#8", "a/#10"));
  EXPECT_THAT(all(), ElementsAre("a/#1", "a/#2", "a/#3", "a/#4", "a/#5", "a/#6", "a/#7", "a/#8", "a/#10"));
}

TEST_F(JumpingTest, ADiskThatKeptTheFirstAttemptGetsTheRestOnce) {
  outbox_->continue_from("a/", 7);
  tell("a/", 8);
  outbox_->continue_from("a/", 20);
  trouble_ = [](testing::WatchedOutbox& disk) { disk.fails_afterwards = true; };
  works();
  outbox_->continue_from("a/", 30);
  tell("a/", 31);
  trouble_ = [](testing::WatchedOutbox& disk) { disk.fails = true; };
  look_again();
  outbox_->continue_from("b/", 3);
  trouble_ = nullptr;
  look_again();
  EXPECT_THAT(all(), ElementsAre("a/#1", "a/#2", "a/#3", "a/#4", "a/#5", "a/#6", "a/#7", "a/#8", "a/#31"));
  EXPECT_THAT(kept_->position_of("a/", 8), 10U) << "moved once";
  EXPECT_EQ(outbox_->last_sequence("b/"), 3U);
}

// Whatever is said and told while there is no disk: once there is one, it has what it would have had.
TEST_F(JumpingTest, TheDiskEndsAsIfItHadBeenThere) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::uint64_t below) { return random() % below; };
    kept_ = make_memory_outbox();
    const auto oracle = make_memory_outbox();
    for (const char* topic : {"a/", "b/"})
      for (std::uint64_t i = 1; i <= 9; ++i)
        for (Outbox* each : {kept_.get(), oracle.get()}) each->acknowledge(each->append(event(topic, i)));
    works_ = false;
    const auto outbox = make_fallback_outbox({.open = [&]() -> std::unique_ptr<Outbox> {
                                                if (!works_) throw OutboxError("no disk");
                                                auto disk = std::make_unique<testing::WatchedOutbox>(*kept_);
                                                const std::uint64_t trouble = draw(3);
                                                disk->fails = trouble == 1;
                                                disk->fails_afterwards = trouble == 2;
                                                return disk;
                                              },
                                              .given_numbers = true},
                                             ages_, clock_, metrics_, logger_);
    std::set<std::string> topics;
    for (int step = 0; step < 30 || outbox->identity() != kept_->identity(); ++step) {
      const std::string topic = draw(2) == 0 ? "a/" : "b/";
      if (topics.insert(topic).second || draw(4) == 0) {
        const std::uint64_t last = draw(30);
        const Continuation at{topic, last, draw(2) == 0 ? Continuation{}.stays : draw(30)};
        for (Outbox* each : {outbox.get(), oracle.get()}) each->continue_from(std::span(&at, 1), {}, {});
      } else if (draw(6) == 0) {
        works_ = true;
        clock_.passed += 5s;
        outbox->refresh();
      } else {
        const OutboxEvent next = event(topic, oracle->last_sequence(topic) + 1);
        for (Outbox* each : {outbox.get(), oracle.get()}) each->append(next);
      }
    }
    for (const std::string& topic : topics) {
      EXPECT_EQ(kept_->last_sequence(topic), oracle->last_sequence(topic)) << seed << ' ' << topic;
      EXPECT_EQ(named(kept_->replay(query({topic})).events), named(oracle->replay(query({topic})).events))
          << seed;
    }
    EXPECT_EQ(named(kept_->unacknowledged(999)), named(oracle->unacknowledged(999))) << seed;
  }
}

}  // namespace
}  // namespace vigil::actors
