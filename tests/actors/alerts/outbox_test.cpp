// One suite for all outboxes, the same random operations on both, and a process that is killed.
#include "actors/alerts/outbox.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/actors/outboxes.h"

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::event;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kStart;
using testing::query;
using testing::run_and_kill;
using testing::shown;
using ::testing::SizeIs;
using Folder = testing::OutboxFolder;

class OutboxTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Outbox> make() {
    return GetParam() == std::string("memory") ? make_memory_outbox(&ages_)
                                               : open_rocksdb_outbox(folder_.outbox(), ages_);
  }
  testing::OutboxClock clock_;
  config::RetentionClock ages_{clock_};
  Folder folder_;
  std::unique_ptr<Outbox> outbox_ = make();
};

TEST_P(OutboxTest, KeepsEventsInOrderUntilTheyAreAcknowledged) {
  EXPECT_EQ(outbox_->last_sequence("a/"), 0U);
  EXPECT_EQ(outbox_->append(event("a/", 1)), 1U);
  EXPECT_EQ(outbox_->append(event("b/", 1, kStart + 5ms)), 2U);
  EXPECT_EQ(outbox_->append(event("a/", 2)), 3U);
  EXPECT_THAT(shown(outbox_->unacknowledged(10)), ElementsAre("1:a/#1@0", "2:b/#1@5", "3:a/#2@0"));
  EXPECT_THAT(shown(outbox_->unacknowledged(2)), ElementsAre("1:a/#1@0", "2:b/#1@5"));
  outbox_->acknowledge(2);
  outbox_->acknowledge(77);
  EXPECT_THAT(shown(outbox_->unacknowledged(10)), ElementsAre("1:a/#1@0", "3:a/#2@0"));
  EXPECT_EQ(outbox_->last_sequence("a/"), 2U);
  EXPECT_EQ(outbox_->last_sequence("b/"), 1U);
}

TEST_P(OutboxTest, RefusesASequenceWithAGap) {
  outbox_->append(event("a/", 1));
  EXPECT_THROW(outbox_->append(event("a/", 1)), std::invalid_argument);
  EXPECT_THROW(outbox_->append(event("a/", 3)), std::invalid_argument);
  EXPECT_THROW(outbox_->append(event("b/", 2)), std::invalid_argument);
  EXPECT_EQ(outbox_->unacknowledged(10).size(), 1U);
}

TEST_P(OutboxTest, KeepsAllOfABatchOrNothing) {
  outbox_->append(event("a/", 1));
  const std::vector<OutboxEvent> batch = {event("b/", 1), event("a/", 2), event("b/", 2, kStart + 5ms)};
  EXPECT_EQ(outbox_->append(batch), 2U);
  EXPECT_THAT(shown(outbox_->unacknowledged(10)),
              ElementsAre("1:a/#1@0", "2:b/#1@0", "3:a/#2@0", "4:b/#2@5"));
  EXPECT_EQ(outbox_->last_sequence("a/"), 2U);
  EXPECT_EQ(outbox_->last_sequence("b/"), 2U);

  for (const auto& gap :
       {std::vector{event("a/", 3), event("b/", 4)}, std::vector{event("a/", 3), event("a/", 3)}})
    EXPECT_THROW(outbox_->append(gap), std::invalid_argument);
  EXPECT_EQ(outbox_->last_position(), 4U) << "nothing of them is kept";
  EXPECT_EQ(outbox_->last_sequence("a/"), 2U);
  EXPECT_EQ(outbox_->append(std::span<const OutboxEvent>()), 0U);
  EXPECT_EQ(outbox_->append(event("c/", 1)), 5U);
}

TEST_P(OutboxTest, KeepsNotesUntilTheyAreTakenBack) {
  const auto note = [](const std::string& key, std::optional<std::string> value) {
    return OutboxNote{key, std::move(value)};
  };
  EXPECT_THAT(outbox_->notes(), IsEmpty());
  const std::vector<OutboxEvent> one = {event("a/", 1)};
  const std::vector<OutboxNote> two = {note("x", "1"), note("y", std::string("\0\n\xff", 3))};
  EXPECT_EQ(outbox_->append(one, two), 1U);
  EXPECT_THAT(outbox_->notes(),
              ElementsAre(::testing::Pair("x", "1"), ::testing::Pair("y", std::string("\0\n\xff", 3))));
  const std::vector<OutboxNote> changed = {note("x", std::nullopt), note("x", "2"), note("y", std::nullopt),
                                           note("z", std::nullopt)};
  EXPECT_EQ(outbox_->append({}, changed), 0U) << "no event";
  EXPECT_THAT(outbox_->notes(), ElementsAre(::testing::Pair("x", "2")));
  EXPECT_EQ(outbox_->last_position(), 1U);
  const std::vector<OutboxNote> lost = {note("x", std::nullopt)};
  EXPECT_THROW(outbox_->append(std::vector{event("a/", 7)}, lost), std::invalid_argument);
  EXPECT_THAT(outbox_->notes(), SizeIs(1)) << "all or nothing";
  outbox_->acknowledge(1);
  clock_.passed += 100h;
  outbox_->prune(1h);
  EXPECT_THAT(outbox_->notes(), SizeIs(1));
  // Nor are they taken for anything else.
  EXPECT_THAT(shown(outbox_->last_events(9)), ElementsAre("1:a/#1@0"));
  ReplayQuery all;
  all.topics = {""};
  EXPECT_THAT(shown(outbox_->replay(all).events), ElementsAre("1:a/#1@0"));
}

TEST_P(OutboxTest, ForgetsOnlyWhatIsOldAndAcknowledged) {
  for (std::uint64_t i = 1; i <= 4; ++i) {
    clock_.passed += 1h;
    outbox_->append(event("a/", i));
  }
  outbox_->acknowledge(1);
  outbox_->acknowledge(3);
  EXPECT_EQ(outbox_->prune(1h), 1U) << "the second is old, but nobody has seen it";
  clock_.passed += 100h;
  EXPECT_EQ(outbox_->prune(1h), 1U);
  EXPECT_THAT(shown(outbox_->unacknowledged(10)), ElementsAre("2:a/#2@0", "4:a/#4@0"));
  EXPECT_EQ(outbox_->last_sequence("a/"), 4U) << "sequences go on";
  outbox_->acknowledge(2);
  EXPECT_EQ(outbox_->prune(1h), 1U) << "it was passed over before";
}

// The events' own times are those of cameras and of a clock that may be wrong.
TEST_P(OutboxTest, GrowsOldByTheTimeThatPassedAndNotByTheEventsTimes) {
  outbox_->append(event("a/", 1, kStart - 9000h));
  outbox_->append(event("a/", 2, kStart + 9000h));
  outbox_->append(event("a/", 3));
  for (std::uint64_t position = 1; position <= 3; ++position) outbox_->acknowledge(position);
  EXPECT_EQ(outbox_->prune(24h), 0U);
  clock_.ahead = 240h;
  EXPECT_EQ(outbox_->prune(24h), 0U) << "the machine's clock stepped, and nothing grew older";
  clock_.ahead = -24h * 365 * 24;
  EXPECT_EQ(outbox_->prune(24h), 0U);
  clock_.ahead = 0h;
  clock_.passed += 25h;
  EXPECT_EQ(outbox_->prune(24h), 2U);
}

TEST_P(OutboxTest, ForgetsABoundedNumberAtOnce) {
  std::vector<OutboxEvent> many;
  for (std::uint64_t i = 1; i <= kPruneAtOnce + 10; ++i) many.push_back({0, "a/", i, kStart, ""});
  outbox_->append(many);
  for (const OutboxEvent& each : outbox_->unacknowledged(many.size())) outbox_->acknowledge(each.position);
  clock_.passed += 2h;
  EXPECT_EQ(outbox_->prune(1h), kPruneAtOnce);
  EXPECT_EQ(outbox_->prune(1h), 9U);
  EXPECT_EQ(outbox_->prune(1h), 0U);
}

TEST_P(OutboxTest, TopicsWithTheSamePrefixCountApart) {
  for (const char* topic : {"alert/n/gate/car/", "alert/n/gate/car/2/", "alert/n/gate/", "", "e", "p"}) {
    EXPECT_EQ(outbox_->last_sequence(topic), 0U) << topic;
    outbox_->append(event(topic, 1));
  }
  EXPECT_EQ(outbox_->unacknowledged(10).size(), 6U);
}

TEST_P(OutboxTest, TheLastEventOfATopicIsNeverForgotten) {
  outbox_->append(event("a/", 1));
  outbox_->append(event("a/", 2, kStart + 1h));
  outbox_->append(event("b/", 1));
  for (std::uint64_t position = 1; position <= 3; ++position) outbox_->acknowledge(position);
  clock_.passed += 100h;
  EXPECT_EQ(outbox_->prune(1h), 1U);
  EXPECT_THAT(shown(outbox_->last_events(1)), ElementsAre("2:a/#2@3600000", "3:b/#1@0"));
  EXPECT_THAT(shown(outbox_->replay(query({""})).events), ElementsAre("2:a/#2@3600000", "3:b/#1@0"));
  outbox_->append(event("a/", 3, kStart + 2h));
  EXPECT_EQ(outbox_->prune(1h), 1U) << "the one that was the last";
}

TEST_P(OutboxTest, ReplaysByTopicsPositionAndTime) {
  outbox_->append(event("alert/a/", 1));
  outbox_->append(event("status/a/", 1, kStart + 1h));
  outbox_->append(event("alert/b/", 1, kStart + 2h));
  outbox_->append(event("alert/a/", 2, kStart + 1h));
  outbox_->acknowledge(1);
  const Replay all = outbox_->replay(query({""}));
  EXPECT_THAT(shown(all.events), ElementsAre("1:alert/a/#1@0", "2:status/a/#1@3600000",
                                             "3:alert/b/#1@7200000", "4:alert/a/#2@3600000"));
  EXPECT_EQ(all.cursor, 4U);
  EXPECT_FALSE(all.more);
  EXPECT_THAT(shown(outbox_->replay(query({"alert/a/", "status/"}, 1)).events),
              ElementsAre("2:status/a/#1@3600000", "4:alert/a/#2@3600000"));
  EXPECT_THAT(outbox_->replay(query({})).events, IsEmpty());
  EXPECT_THAT(outbox_->replay(query({""}, 4)).events, IsEmpty());
  EXPECT_EQ(outbox_->replay(query({""}, 77)).cursor, 77U);
  ReplayQuery late = query({"alert/"});
  late.since = kStart + 1h;
  EXPECT_THAT(shown(outbox_->replay(late).events),
              ElementsAre("3:alert/b/#1@7200000", "4:alert/a/#2@3600000"));
}

TEST_P(OutboxTest, AReplayIsBoundedAndGoesOnAtItsCursor) {
  for (std::uint64_t i = 1; i <= 10; ++i) outbox_->append(event(i % 2 == 0 ? "even/" : "odd/", (i + 1) / 2));
  ReplayQuery few = query({"even/"});
  few.max_events = 2;
  const Replay first = outbox_->replay(few);
  EXPECT_THAT(shown(first.events), ElementsAre("2:even/#1@0", "4:even/#2@0"));
  EXPECT_EQ(first.cursor, 5U) << "what is not wanted was passed";
  EXPECT_TRUE(first.more);
  few.after = first.cursor;
  few.max_events = 3;
  const Replay rest = outbox_->replay(few);
  EXPECT_THAT(shown(rest.events), ElementsAre("6:even/#3@0", "8:even/#4@0", "10:even/#5@0"));
  EXPECT_EQ(rest.cursor, 10U);
  EXPECT_FALSE(rest.more);

  ReplayQuery small = query({"odd/"});
  small.max_bytes = 1;
  EXPECT_EQ(outbox_->replay(small).events.size(), 1U) << "one event always fits";
  ReplayQuery brief = query({"even/"});
  brief.max_scanned = 3;
  const Replay glance = outbox_->replay(brief);
  EXPECT_THAT(shown(glance.events), ElementsAre("2:even/#1@0"));
  EXPECT_EQ(glance.cursor, 3U);
  EXPECT_TRUE(glance.more);
}

TEST_P(OutboxTest, FindsTheFirstKeptEventFromASequence) {
  EXPECT_EQ(outbox_->position_of("a/", 0), std::nullopt);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    outbox_->append(event("a/", i, kStart + i * 1h));
    outbox_->append(event("a/b/", i, kStart + 9h));
  }
  outbox_->acknowledge(1);
  EXPECT_EQ(outbox_->position_of("a/", 2), 3U);
  EXPECT_EQ(outbox_->position_of("a/b/", 3), 6U);
  EXPECT_EQ(outbox_->position_of("a/", 4), std::nullopt);
  EXPECT_EQ(outbox_->position_of("a", 1), std::nullopt) << "a topic, no prefix";
  EXPECT_EQ(outbox_->position_of("a/", 0), 1U);
  clock_.passed += 2h;
  outbox_->prune(1h);
  EXPECT_EQ(outbox_->position_of("a/", 0), 3U) << "the first was forgotten";
}

TEST_P(OutboxTest, KnowsTheLastEventOfEachTopic) {
  EXPECT_EQ(outbox_->last_position(), 0U);
  outbox_->append(event("b/", 1));
  outbox_->append(event("a/", 1));
  outbox_->append(event("b/", 2, kStart + 1h));
  EXPECT_EQ(outbox_->last_position(), 3U);
  EXPECT_THAT(shown(outbox_->last_events(1)), ElementsAre("2:a/#1@0", "3:b/#2@3600000"));
  outbox_->append(event("b/", 3, kStart + 2h));
  EXPECT_THAT(shown(outbox_->last_events(2)), ElementsAre("2:a/#1@0", "3:b/#2@3600000", "4:b/#3@7200000"));
  EXPECT_THAT(shown(outbox_->last_events(9)), SizeIs(4));
  EXPECT_THAT(outbox_->last_events(0), IsEmpty());
}

TEST_P(OutboxTest, AcknowledgedInAnyOrderOnlyTheOthersAreLeft) {
  for (std::uint64_t i = 1; i <= 6; ++i) outbox_->append(event("a/", i));
  for (const std::uint64_t position : {4U, 2U, 1U, 6U}) outbox_->acknowledge(position);
  EXPECT_THAT(shown(outbox_->unacknowledged(10)), ElementsAre("3:a/#3@0", "5:a/#5@0"));
}

TEST_P(OutboxTest, AnotherOutboxHasAnotherIdentity) {
  EXPECT_EQ(outbox_->identity().size(), 16U);
  EXPECT_NE(make_memory_outbox()->identity(), outbox_->identity());
}

INSTANTIATE_TEST_SUITE_P(All, OutboxTest, ::testing::Values("memory", "rocksdb"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Outboxes, AnswerTheSameToTheSameOperations) {
  const Folder folder;
  testing::OutboxClock clock;
  config::RetentionClock ages(clock);
  const auto memory = make_memory_outbox(&ages);
  auto rocksdb = open_rocksdb_outbox(folder.outbox(), ages);
  std::mt19937_64 random(1);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  for (int step = 0; step < 2000; ++step) {
    const std::string topic = "alert/t/" + std::to_string(draw(5)) + '/';
    switch (draw(8)) {
      case 0:
      case 1:
      case 2: {
        const auto time = kStart + std::chrono::minutes(draw(100));
        const std::uint64_t sequence = memory->last_sequence(topic) + 1;
        ASSERT_EQ(memory->append(event(topic, sequence, time)),
                  rocksdb->append(event(topic, sequence, time)));
        break;
      }
      case 3:
      case 4: {
        const std::uint64_t position = draw(1000);
        memory->acknowledge(position);
        rocksdb->acknowledge(position);
        break;
      }
      case 5: {
        clock.passed += std::chrono::minutes(draw(10));
        const auto age = std::chrono::minutes(draw(200));
        ASSERT_EQ(memory->prune(age), rocksdb->prune(age));
        break;
      }
      case 6:
        if (draw(20) == 0) {
          rocksdb.reset();
          rocksdb = open_rocksdb_outbox(folder.outbox(), ages);
        }
        break;
      default:
        break;
    }
    ASSERT_EQ(memory->last_sequence(topic), rocksdb->last_sequence(topic));
    ASSERT_EQ(shown(memory->unacknowledged(20)), shown(rocksdb->unacknowledged(20)));
    const std::size_t each = draw(5);
    ASSERT_EQ(shown(memory->last_events(each)), shown(rocksdb->last_events(each)));
    const std::uint64_t sequence = draw(100);
    ASSERT_EQ(memory->position_of(topic, sequence), rocksdb->position_of(topic, sequence));
    ReplayQuery some = query({topic, "alert/t/1/"}, draw(500));
    some.max_events = draw(10) + 1;
    some.max_bytes = draw(200);
    some.max_scanned = draw(50) + 1;
    if (draw(2) == 0) some.since = kStart + std::chrono::minutes(draw(100));
    const Replay expected = memory->replay(some);
    const Replay found = rocksdb->replay(some);
    ASSERT_EQ(shown(expected.events), shown(found.events));
    ASSERT_EQ(expected.cursor, found.cursor);
    ASSERT_EQ(expected.more, found.more);
  }
}

/// A disk and a clock for tests that need no others.
class RocksdbOutbox : public ::testing::Test {
 protected:
  std::unique_ptr<Outbox> open(std::uintmax_t keep_free = 16 << 20) {
    return open_rocksdb_outbox(folder_.outbox(), ages_, keep_free);
  }
  testing::OutboxClock clock_;
  config::RetentionClock ages_{clock_};
  const Folder folder_;
};

TEST_F(RocksdbOutbox, AKilledProcessLosesNothingThatWasAppended) {
  for (std::uint64_t run = 0; run < 3; ++run) {
    ASSERT_EQ(0, run_and_kill([&] {
                const auto outbox = open();
                for (int i = 0; i < 5; ++i) outbox->append(event("a/", outbox->last_sequence("a/") + 1));
                outbox->acknowledge(5 * run + 1);
              }));
  }
  const auto outbox = open();
  EXPECT_EQ(outbox->last_sequence("a/"), 15U);
  const auto left = outbox->unacknowledged(100);
  ASSERT_GE(left.size(), 12U) << "an acknowledgement may be lost, an event may not";
  EXPECT_EQ(left.back().sequence, 15U);
  EXPECT_EQ(outbox->append(event("a/", 16)), 16U);
}

// A limit on the size of files stands for the full disk: it needs no rights and no other file system. RocksDB
// takes both for an error of writing, after which it refuses all writes until it is told to go on.
TEST_F(RocksdbOutbox, AFullDiskRefusesEventsAndLosesNone) {
  // In a process of its own, since the limit is the process's.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto fail = [](int step) { ::_exit(step); };
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit plenty = limit;
    auto outbox = open();
    for (std::uint64_t i = 1; i <= 3; ++i) outbox->append(event("a/", i));
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
    OutboxEvent large = event("a/", 4);
    large.body.assign(8192, 'x');
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        outbox->append(large);
        fail(1);
      } catch (const OutboxError&) {
        if (outbox->last_sequence("a/") != 3 || outbox->last_position() != 3) fail(2);
        // What is kept can be read all the while.
        if (outbox->replay(query({"a/"})).events.size() != 3) fail(3);
      }
    }
    // Published, and not again, although that cannot be written.
    limit.rlim_cur = 1;
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      outbox->acknowledge(1);
      fail(4);
    } catch (const OutboxError&) {
      if (outbox->unacknowledged(9).size() != 2) fail(5);
    }
    setrlimit(RLIMIT_FSIZE, &plenty);
    if (outbox->append(large) != 4) fail(6);
    outbox->acknowledge(2);
    outbox->append(event("a/", 5));
    // The end of this process is sudden, too: what was taken after the error has to be as safe as before it.
    ::kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "step " << WEXITSTATUS(status);
  const auto outbox = open();
  const Replay all = outbox->replay(query({""}));
  ASSERT_EQ(all.events.size(), 5U);
  EXPECT_EQ(all.events[3].body, std::string(8192, 'x'));
  EXPECT_EQ(outbox->last_sequence("a/"), 5U);
}

// Whatever is written first after the error: no event has to come for it.
TEST_F(RocksdbOutbox, AcknowledgesAndForgetsAsSoonAsTheDiskHasRoomAgain) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto fail = [](int step) { ::_exit(step); };
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit plenty = limit;
    limit.rlim_cur = 1;
    auto outbox = open();
    for (std::uint64_t i = 1; i <= 4; ++i) outbox->append(event("a/", i));
    const auto acknowledge_on_full_disk = [&](std::uint64_t position) {
      setrlimit(RLIMIT_FSIZE, &limit);
      try {
        outbox->acknowledge(position);
        fail(1);
      } catch (const OutboxError&) {
        if (outbox->replay(query({"a/"})).events.size() != 4) fail(2);
      }
      setrlimit(RLIMIT_FSIZE, &plenty);
    };
    try {
      acknowledge_on_full_disk(1);
      acknowledge_on_full_disk(2);
      outbox->acknowledge(3);
      if (outbox->unacknowledged(9).size() != 1) fail(3);
      acknowledge_on_full_disk(4);
      clock_.passed += 2h;
      if (outbox->prune(1h) != 3) fail(4);
    } catch (const OutboxError&) {
      fail(5);
    }
    ::kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "step " << WEXITSTATUS(status);
  const auto outbox = open();
  EXPECT_EQ(shown(outbox->replay(query({""})).events), shown({outbox->last_events(1)}));
}

TEST_F(RocksdbOutbox, LeavesTheLastBytesOfADiskAlone) {
  {
    const auto roomy = open();
    for (std::uint64_t i = 1; i <= 2; ++i) roomy->append(event("a/", i));
  }
  const auto outbox = open(std::uintmax_t{1} << 60);
  try {
    outbox->append(event("a/", 3));
    FAIL() << "no error";
  } catch (const OutboxError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder_.outbox().string() + ": no space left on the disk ("));
  }
  EXPECT_EQ(outbox->replay(query({"a/"})).events.size(), 2U) << "what is kept can be read";
  outbox->acknowledge(1);
  clock_.passed += 2h;
  EXPECT_EQ(outbox->prune(1h), 1U) << "and forgotten";
  EXPECT_EQ(outbox->last_sequence("a/"), 2U);
}

TEST_F(RocksdbOutbox, KeepsItsIdentityAndIndexesTheOlderLayout) {
  auto outbox = open();
  const std::string identity = outbox->identity();
  for (std::uint64_t i = 1; i <= 3; ++i) outbox->append(event("a/", i));
  outbox->acknowledge(1);
  outbox.reset();
  EXPECT_EQ(open()->identity(), identity);
  {
    // As the older layout had it.
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, folder_.outbox().string(), &db).ok());
    const std::unique_ptr<rocksdb::DB> store(db);
    ASSERT_TRUE(store->DeleteRange({}, store->DefaultColumnFamily(), "t", "u").ok());
    ASSERT_TRUE(store->Delete({}, "i").ok());
    ASSERT_TRUE(store->Put({}, "v", "1").ok());
  }
  outbox = open();
  EXPECT_EQ(outbox->identity().size(), 16U);
  EXPECT_EQ(outbox->position_of("a/", 2), 2U);
  EXPECT_THAT(shown(outbox->last_events(1)), ElementsAre("3:a/#3@0"));
  EXPECT_THAT(shown(outbox->unacknowledged(9)), ElementsAre("2:a/#2@0", "3:a/#3@0"));
  outbox.reset();
  {
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, folder_.outbox().string(), &db).ok());
    const std::unique_ptr<rocksdb::DB> store(db);
    ASSERT_TRUE(store->Put({}, "v", "99").ok());
  }
  try {
    open();
    FAIL() << "no error";
  } catch (const OutboxError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has layout 99, this program knows 3"));
  }
}

TEST_F(RocksdbOutbox, NotesSurviveAKillTogetherWithTheirEvents) {
  run_and_kill([&] {
    const auto outbox = open();
    const std::vector<OutboxEvent> events = {event("a/", 1)};
    const std::vector<OutboxNote> notes = {{"open", "a/"}, {"over", "b/"}};
    outbox->append(events, notes);
    const std::vector<OutboxNote> later = {{"over", std::nullopt}};
    outbox->append(std::vector{event("a/", 2)}, later);
  });
  const auto outbox = open();
  EXPECT_EQ(outbox->last_sequence("a/"), 2U);
  EXPECT_THAT(outbox->notes(), ElementsAre(::testing::Pair("open", "a/")));
}

TEST_F(RocksdbOutbox, IsOpenOnceOnly) {
  const auto first = open();
  try {
    open();
    FAIL() << "no error";
  } catch (const OutboxError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder_.outbox().string()));
    EXPECT_THAT(error.what(), HasSubstr("lock"));
  }
}

TEST_F(RocksdbOutbox, AFolderThatCannotBeMadeIsNamed) {
  std::filesystem::create_directories(folder_.outbox().parent_path());
  std::ofstream(folder_.outbox()) << "a file";
  try {
    open_rocksdb_outbox(folder_.outbox() / "x", ages_);
    FAIL() << "no error";
  } catch (const OutboxError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder_.outbox().string()));
  }
}

}  // namespace
}  // namespace vigil::actors
