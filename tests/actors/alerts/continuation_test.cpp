// Topics whose numbers others give, too: the same suite for all outboxes, and a process that is killed.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include "actors/alerts/books.h"
#include "actors/alerts/fallback_outbox.h"
#include "actors/alerts/outbox.h"
#include "tests/actors/outboxes.h"

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
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

TEST(Series, AreOfCamerasOrOfProcesses) {
  EXPECT_EQ(series_of("alert/north/gate/person/"), "gate");
  EXPECT_EQ(series_of("topic/night/north/gate/person/"), "gate");
  EXPECT_EQ(series_of("status/north/gate/"), "gate");
  EXPECT_EQ(series_of("process/node-1/"), "");
  for (const char* no : {"", "/", "alert/north/gate/", "alert/north/gate/person", "alert//gate/person/",
                         "gate/", "status/north/", "process/a/b/", "topic/night/north/gate/"})
    EXPECT_EQ(series_of(no), std::nullopt) << no;
}

}  // namespace
}  // namespace vigil::actors
