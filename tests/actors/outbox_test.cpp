// One suite for all outboxes, the same random operations on both, and a process that is killed.
#include "actors/alerts/outbox.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr config::Clock::WallTime kStart{std::chrono::seconds(1785578400)};

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "vigil-outbox-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path outbox() const { return path_ / "deep" / "outbox"; }

 private:
  std::filesystem::path path_;
};

OutboxEvent event(const std::string& topic, std::uint64_t sequence, config::Clock::WallTime time = kStart) {
  return {0, topic, sequence, time, topic + '#' + std::to_string(sequence) + std::string("\0\n\xff", 3)};
}

std::vector<std::string> shown(const std::vector<OutboxEvent>& events) {
  std::vector<std::string> result;
  for (const OutboxEvent& each : events) {
    EXPECT_EQ(each.body, event(each.topic, each.sequence).body);
    result.push_back(std::to_string(each.position) + ':' + each.topic + '#' + std::to_string(each.sequence) +
                     '@' + std::to_string((each.time - kStart) / 1ms));
  }
  return result;
}

class OutboxTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Outbox> make() const {
    return GetParam() == std::string("memory") ? make_memory_outbox() : open_rocksdb_outbox(folder_.outbox());
  }
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

TEST_P(OutboxTest, ForgetsOnlyWhatIsOldAndAcknowledged) {
  for (std::uint64_t i = 1; i <= 4; ++i) outbox_->append(event("a/", i, kStart + i * 1h));
  outbox_->acknowledge(1);
  outbox_->acknowledge(3);
  EXPECT_EQ(outbox_->prune(kStart + 3h), 1U) << "the second is old, but nobody has seen it";
  EXPECT_EQ(outbox_->prune(kStart + 100h), 1U);
  EXPECT_THAT(shown(outbox_->unacknowledged(10)), ElementsAre("2:a/#2@7200000", "4:a/#4@14400000"));
  EXPECT_EQ(outbox_->last_sequence("a/"), 4U) << "sequences go on";
}

TEST_P(OutboxTest, TopicsWithTheSamePrefixCountApart) {
  for (const char* topic : {"alert/n/gate/car/", "alert/n/gate/car/2/", "alert/n/gate/", "", "e", "p"}) {
    EXPECT_EQ(outbox_->last_sequence(topic), 0U) << topic;
    outbox_->append(event(topic, 1));
  }
  EXPECT_EQ(outbox_->unacknowledged(10).size(), 6U);
}

INSTANTIATE_TEST_SUITE_P(All, OutboxTest, ::testing::Values("memory", "rocksdb"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Outboxes, AnswerTheSameToTheSameOperations) {
  const Folder folder;
  const auto memory = make_memory_outbox();
  auto rocksdb = open_rocksdb_outbox(folder.outbox());
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
        const auto before = kStart + std::chrono::minutes(draw(100));
        ASSERT_EQ(memory->prune(before), rocksdb->prune(before));
        break;
      }
      case 6:
        if (draw(20) == 0) {
          rocksdb.reset();
          rocksdb = open_rocksdb_outbox(folder.outbox());
        }
        break;
      default:
        break;
    }
    ASSERT_EQ(memory->last_sequence(topic), rocksdb->last_sequence(topic));
    ASSERT_EQ(shown(memory->unacknowledged(20)), shown(rocksdb->unacknowledged(20)));
  }
}

/// Runs `work` in a process of its own, which is then killed without a chance to tidy up.
template <class F>
void run_and_kill(F work) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    work();
    ::kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(RocksdbOutbox, AKilledProcessLosesNothingThatWasAppended) {
  const Folder folder;
  for (std::uint64_t run = 0; run < 3; ++run) {
    run_and_kill([&] {
      const auto outbox = open_rocksdb_outbox(folder.outbox());
      for (int i = 0; i < 5; ++i) outbox->append(event("a/", outbox->last_sequence("a/") + 1));
      outbox->acknowledge(5 * run + 1);
    });
  }
  const auto outbox = open_rocksdb_outbox(folder.outbox());
  EXPECT_EQ(outbox->last_sequence("a/"), 15U);
  const auto left = outbox->unacknowledged(100);
  ASSERT_GE(left.size(), 12U) << "an acknowledgement may be lost, an event may not";
  EXPECT_EQ(left.back().sequence, 15U);
  EXPECT_EQ(outbox->append(event("a/", 16)), 16U);
}

TEST(RocksdbOutbox, IsOpenOnceOnly) {
  const Folder folder;
  const auto first = open_rocksdb_outbox(folder.outbox());
  try {
    open_rocksdb_outbox(folder.outbox());
    FAIL() << "no error";
  } catch (const OutboxError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder.outbox().string()));
    EXPECT_THAT(error.what(), HasSubstr("lock"));
  }
}

TEST(RocksdbOutbox, AFolderThatCannotBeMadeIsNamed) {
  const Folder folder;
  std::filesystem::create_directories(folder.outbox().parent_path());
  std::ofstream(folder.outbox()) << "a file";
  try {
    open_rocksdb_outbox(folder.outbox() / "x");
    FAIL() << "no error";
  } catch (const OutboxError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder.outbox().string()));
  }
}

}  // namespace
}  // namespace vigil::actors
