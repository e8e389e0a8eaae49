// Alerts without a disk: from memory, and back onto the disk when there is one.
#include "actors/alerts/fallback_outbox.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "actors/alerts/alert_desk.h"
#include "engine/kv/database/rocksdb_parts.h"
#include "tests/actors/fakes.h"
#include "tests/actors/outboxes.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::all_events;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kStart;
using ::testing::Not;
using testing::query;
using ::testing::SizeIs;

/// An event as it is told: its body has its number.
OutboxEvent told(const std::string& topic, std::uint64_t sequence, const std::string& id,
                 const std::string& phase = "new") {
  const json body = {{"type", "dev.vigil.alert.v1"},
                     {"source", "/site/n/camera/gate"},
                     {"id", id + "-0"},
                     {"data", {{"seq", sequence}, {"episode", id}, {"phase", phase}}}};
  return {0, topic, sequence, kStart, body.dump()};
}

/// "TOPIC#SEQUENCE ID PHASE" of each; checks that the numbers in the bodies are theirs.
std::vector<std::string> named(const std::vector<OutboxEvent>& events) {
  std::vector<std::string> result;
  for (const OutboxEvent& each : events) {
    const json body = json::parse(each.body);
    EXPECT_EQ(body.at("data").at("seq"), each.sequence) << each.topic;
    const json& data = body.at("data");
    result.push_back(each.topic + '#' + std::to_string(each.sequence) + ' ' +
                     body.at("id").get<std::string>() + ' ' +
                     data.value("phase", data.value("state", std::string())));
  }
  return result;
}

class FallbackOutboxTest : public ::testing::Test {
 protected:
  std::unique_ptr<Outbox> disk() {
    if (!fault_.empty()) throw OutboxError("outbox /disk: " + fault_);
    ++opened_;
    return open_rocksdb_outbox(folder_.outbox(), ages_);
  }
  std::unique_ptr<Outbox> make(std::size_t memory = 16 << 20) {
    return make_fallback_outbox({.open = [this] { return disk(); }, .memory_bytes = memory}, ages_, clock_,
                                metrics_, logger_);
  }
  std::string log() const { return log_.str(); }

  testing::OutboxClock clock_;
  config::RetentionClock ages_{clock_};
  const testing::OutboxFolder folder_;
  Metrics metrics_;
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  std::string fault_;
  int opened_ = 0;
};

TEST_F(FallbackOutboxTest, IsTheOneOnTheDiskWhileThatOpens) {
  const auto outbox = make();
  outbox->append(told("a/", 1, "X"));
  EXPECT_THAT(outbox->take_notices(), IsEmpty());
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 0\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_replaced_total{reason=\"behind\"} 0\n"))
      << "there from the beginning";
  EXPECT_EQ(log(), "");
}

TEST_F(FallbackOutboxTest, AtTheEndTheDiskIsTriedOnceMoreAndWhatIsInMemoryAloneIsTold) {
  fault_ = "No space left on device";
  const auto outbox = make();
  outbox->append(told("a/", 1, "M1"));
  outbox->append(told("b/", 1, "M2"));
  outbox->acknowledge(1);
  const Outbox::Passing lost = outbox->finish();
  EXPECT_EQ(lost.events, 2U) << "whoever asks for them later, published or not";
  EXPECT_EQ(lost.reason, "outbox /disk: No space left on device");
  fault_.clear();
  EXPECT_EQ(outbox->finish().events, 0U) << "at once, however short the time since it was tried";
  EXPECT_THAT(named(all_events(*outbox)), ElementsAre("a/#1 M1-0 new", "b/#1 M2-0 new"));
}

TEST_F(FallbackOutboxTest, AlertsGoOutFromMemoryAndMoveBehindWhatTheDiskHas) {
  std::string identity;
  {
    const auto before = disk();
    identity = before->identity();
    for (std::uint64_t i = 1; i <= 3; ++i) before->append(told("a/", i, "OLD" + std::to_string(i), "end"));
    for (std::uint64_t i = 1; i <= 2; ++i) before->acknowledge(i);
  }
  fault_ = "No space left on device";
  const auto outbox = make();
  EXPECT_NE(outbox->identity(), identity);
  EXPECT_THAT(log(), HasSubstr("No space left on device; events are kept in memory until it can be used"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 1\n"));
  auto notices = outbox->take_notices();
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_EQ(notices[0].reason, "outbox_memory");

  outbox->append(told("a/", 1, "M1"));
  outbox->append(told("b/", 1, "M2"));
  outbox->append(told("a/", 2, "M3"));
  for (const std::uint64_t position : {1U, 2U, 3U}) outbox->acknowledge(position);
  outbox->append(told("b/", 2, "M4"));
  clock_.passed += 4s;
  EXPECT_THAT(named(outbox->unacknowledged(9)), ElementsAre("b/#2 M4-0 new"));
  clock_.passed += 1s;
  outbox->refresh();
  EXPECT_NE(outbox->identity(), identity) << "tried, and still full";

  fault_.clear();
  clock_.passed += 5s;
  EXPECT_THAT(outbox->unacknowledged(9), SizeIs(1))
      << "it changes only where no number and no position is in use";
  outbox->refresh();
  EXPECT_THAT(named(outbox->unacknowledged(9)),
              ElementsAre("a/#3 OLD3-0 end", "a/#5 M3-0 new", "b/#2 M4-0 new"))
      << "what was not published, and the last of each topic, so that its number is known";
  EXPECT_EQ(outbox->identity(), identity);
  EXPECT_EQ(outbox->last_sequence("a/"), 5U);
  EXPECT_THAT(named(all_events(*outbox)),
              ElementsAre("a/#1 OLD1-0 end", "a/#2 OLD2-0 end", "a/#3 OLD3-0 end", "a/#4 M1-0 new",
                          "b/#1 M2-0 new", "a/#5 M3-0 new", "b/#2 M4-0 new"));
  notices = outbox->take_notices();
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_EQ(notices[0].reason, "outbox_disk");
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 0\n"));
  outbox->append(told("a/", 6, "D"));
  EXPECT_EQ(opened_, 2);
}

TEST_F(FallbackOutboxTest, WhatTheDiskWasLeftWithEndsWhenItComesBack) {
  disk()->append(told("a/", 1, "OPEN"));
  fault_ = "Permission denied";
  const auto outbox = make();
  outbox->append(told("a/", 1, "M"));
  fault_.clear();
  clock_.passed += 5s;
  outbox->refresh();
  EXPECT_THAT(named(all_events(*outbox)), ElementsAre("a/#1 OPEN-0 new", "a/#2 OPEN-1 end", "a/#3 M-0 new"));
}

TEST_F(FallbackOutboxTest, AProcessThatWasKilledIsToldToBeGoneWhenTheDiskComesBack) {
  const auto online = [](const std::string& name) { return OutboxNote{"process", name}; };
  disk()->append({}, std::vector{online("north-1")});
  fault_ = "Permission denied";
  const auto outbox = make();
  outbox->append({}, std::vector{online("north-2")});
  fault_.clear();
  clock_.passed += 5s;
  outbox->refresh();
  const auto events = all_events(*outbox);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].topic, "process/north-1/");
  EXPECT_THAT(events[0].body, ::testing::AllOf(HasSubstr("\"offline\""), HasSubstr("\"restart\"")));
  EXPECT_EQ(outbox->notes().at("process"), "north-2");
}

TEST_F(FallbackOutboxTest, ADiskThatFailsWhileItIsMovedToKeepsNothingOfIt) {
  fault_ = "Read-only file system";
  auto outbox = make_fallback_outbox(
      {.open = [this]() -> std::unique_ptr<Outbox> {
        if (!fault_.empty()) throw OutboxError(fault_);
        // Opens, and takes no event.
        return open_rocksdb_outbox(folder_.outbox(), ages_, opened_++ == 0 ? std::uintmax_t{1} << 60 : 0);
      }},
      ages_, clock_, metrics_, logger_);
  outbox->append(told("a/", 1, "M1"));
  fault_.clear();
  clock_.passed += 5s;
  outbox->refresh();
  EXPECT_THAT(named(outbox->unacknowledged(9)), ElementsAre("a/#1 M1-0 new"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 1\n"));
  clock_.passed += 5s;
  outbox->refresh();
  EXPECT_THAT(named(outbox->unacknowledged(9)), ElementsAre("a/#1 M1-0 new"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 0\n"));
}

TEST_F(FallbackOutboxTest, ADiskThatKeepsWhatItCannotSayIsMovedToOnce) {
  fault_ = "Read-only file system";
  bool acknowledges = true;
  const auto kept = make_memory_outbox();
  // Each time it is opened, what is kept is there.
  const auto outbox = make_fallback_outbox({.open = [&]() -> std::unique_ptr<Outbox> {
                                             if (!fault_.empty()) throw OutboxError(fault_);
                                             auto disk = std::make_unique<testing::WatchedOutbox>(*kept);
                                             disk->fails_afterwards = opened_++ == 0;
                                             disk->fails_to_acknowledge = !acknowledges;
                                             return disk;
                                           }},
                                           ages_, clock_, metrics_, logger_);
  outbox->append(told("a/", 1, "M1"));
  outbox->append(told("a/", 2, "M2"));
  outbox->acknowledge(1);
  fault_.clear();
  clock_.passed += 5s;
  outbox->refresh();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 1\n")) << "who knows what it has";
  outbox->append(told("b/", 1, "M3"));
  acknowledges = false;
  clock_.passed += 5s;
  outbox->refresh();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 0\n"))
      << "an acknowledgement that fails is no reason to move it all again";
  EXPECT_THAT(named(all_events(*kept)), ElementsAre("a/#1 M1-0 new", "a/#2 M2-0 new", "b/#1 M3-0 new"));
}

// More topics than memory has room for, of which each keeps its last event.
TEST_F(FallbackOutboxTest, MemoryThatIsFullMovesAllTheSame) {
  fault_ = "No space left on device";
  const auto outbox = make(1000);
  int topics = 0;
  EXPECT_THROW(for (;; ++topics) outbox->append(told("t" + std::to_string(topics) + "/", 1, "M")),
               OutboxError);
  fault_.clear();
  clock_.passed += 5s;
  outbox->refresh();
  outbox->append(told("last/", 1, "M"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 0\n"));
  EXPECT_THAT(all_events(*outbox), SizeIs(topics + 1));
}

// Positions of the one mean nothing in the other.
TEST_F(FallbackOutboxTest, WhatWaitsOnTheDiskIsPublishedWhenItComesBack) {
  {
    const auto before = disk();
    for (std::uint64_t i = 1; i <= 3; ++i) before->append(told("a/", i, "OLD" + std::to_string(i), "end"));
  }
  fault_ = "No space left on device";
  const auto outbox = make();
  testing::FakePublisher publisher;
  AlertDesk alerts({.model = {"m"}, .run = 1}, *outbox, publisher, metrics_, clock_);
  const WatchPtr gate = testing::watch("gate");
  for (int i = 0; i < 9; ++i) alerts.status(gate, i % 2 == 0 ? CameraState::up : CameraState::down, "");
  EXPECT_THAT(publisher.messages, SizeIs(9));
  publisher.messages.clear();
  fault_.clear();
  clock_.passed += 6s;
  alerts.tick();
  EXPECT_THAT(named(publisher.messages),
              ::testing::IsSupersetOf({"a/#1 OLD1-0 end", "a/#2 OLD2-0 end", "a/#3 OLD3-0 end"}));
  EXPECT_THAT(publisher.messages, SizeIs(4)) << "and the last of the topic that was moved";
  EXPECT_THAT(outbox->unacknowledged(9), IsEmpty());
}

TEST_F(FallbackOutboxTest, MemoryIsBounded) {
  fault_ = "No space left on device";
  const auto outbox = make(10'000);
  std::uint64_t sequence = 0;
  const auto append = [&] {
    OutboxEvent event = told("a/", sequence + 1, "M");
    event.body.resize(1000, ' ');
    outbox->append(event);
    ++sequence;
  };
  for (int i = 0; i < 9; ++i) append();
  EXPECT_THROW(append(), OutboxError) << "nothing of it was published";
  EXPECT_EQ(outbox->last_sequence("a/"), 9U);
  for (std::uint64_t position = 1; position <= 9; ++position) outbox->acknowledge(position);
  for (int i = 0; i < 30; ++i) {
    append();
    outbox->acknowledge(sequence);
  }
  EXPECT_THAT(outbox->replay(query({""})).events, SizeIs(9)) << "the oldest went";
  EXPECT_EQ(outbox->replay(query({""})).events.back().sequence, 39U);
}

TEST_F(FallbackOutboxTest, ALockedOutboxIsAnError) {
  const auto other = disk();
  EXPECT_THROW(make(), OutboxLocked);
}

TEST_F(FallbackOutboxTest, TellsWhatTheClockDoes) {
  const auto outbox = make();
  clock_.ahead = 240h;
  outbox->refresh();
  const auto notices = outbox->take_notices();
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_EQ(notices[0].reason, "clock");
  EXPECT_THAT(notices[0].text, HasSubstr("10d ahead"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_clock_steps_total 1\n"));
  EXPECT_THAT(log(), HasSubstr("10d ahead"));
}

TEST_F(FallbackOutboxTest, CountsAReplacementByItsReason) {
  disk()->append(told("a/", 1, "X"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.outbox()))
    if (entry.path().filename() == "CURRENT") std::ofstream(entry.path()) << "nonsense";
  const auto outbox = make();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_replaced_total{reason=\"unreadable\"} 1\n"));
  EXPECT_THAT(log(), HasSubstr("goes on under a new identity"));
  EXPECT_THAT(outbox->take_notices(), SizeIs(1));
}

/// A folder of its own file system of so many bytes, where that is permitted.
class SmallDisk {
 public:
  SmallDisk(const std::filesystem::path& path, const char* options) : path_(path) {
    std::filesystem::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path path_;
  bool mounted_ = false;
};

TEST_F(FallbackOutboxTest, StartsOnAFullDiskAndMovesWhenItHasRoom) {
  const SmallDisk small(folder_.outbox(), "size=64m");
  if (!small.mounted()) GTEST_SKIP() << "no file system may be mounted here";
  const auto ballast = folder_.outbox().parent_path() / "outbox" / "lost+found";
  {
    std::ofstream file(ballast, std::ios::binary);
    const std::string block(1 << 20, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  const auto outbox = make();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 1\n"));
  outbox->append(told("a/", 1, "M1"));
  outbox->acknowledge(1);
  std::filesystem::resize_file(ballast, 1 << 20);
  clock_.passed += 5s;
  outbox->refresh();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_in_memory 0\n")) << log();
  EXPECT_THAT(named(all_events(*outbox)), ElementsAre("a/#1 M1-0 new"));
}

// As soon as descriptors are free again, whatever is asked first.
TEST_F(FallbackOutboxTest, OpensAgainAtOnceWhenDescriptorsAreFree) {
  int status = testing::run_and_kill([&] {
    const auto fail = [](int step) { ::_exit(step); };
    const auto outbox = open_rocksdb_outbox(folder_.outbox(), ages_);
    outbox->append(told("a/", 1, "X"));
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit plenty = limit;
    // A write that fails has it opened again, and there are no descriptors for that.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit size{};
    getrlimit(RLIMIT_FSIZE, &size);
    rlimit none = size;
    none.rlim_cur = 1;
    setrlimit(RLIMIT_FSIZE, &none);
    try {
      outbox->append(told("a/", 2, "Y"));
      fail(1);
    } catch (const OutboxError&) {
    }
    setrlimit(RLIMIT_FSIZE, &size);
    limit.rlim_cur = 4;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        outbox->acknowledge(1);
        fail(2);
      } catch (const OutboxLocked&) {
        fail(3);
      } catch (const OutboxError&) {
      }
    }
    const auto notices = outbox->take_notices();
    if (!notices.empty()) fail(4);
    setrlimit(RLIMIT_NOFILE, &plenty);
    try {
      if (outbox->last_sequence("a/") != 1) fail(5);
      outbox->append(told("a/", 2, "Y"));
    } catch (const OutboxError& error) {
      std::cerr << error.what() << '\n';
      fail(6);
    }
  });
  EXPECT_EQ(status, 0) << "step " << WEXITSTATUS(status);
}

}  // namespace
}  // namespace vigil::actors
