// A registry whose answers are timed.
#include "cluster/registry/timed_registry.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/registry/memory_registry.h"
#include "tests/cluster/virtual_loop.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TimedRegistryTest : public ::testing::Test {
 protected:
  testing::VirtualTime time_;
  bool cut_ = false;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(time_);
  MemoryRegistry memory_{store_,
                         time_,
                         {.post =
                              [this](MemoryRegistry::Leg, std::function<void()> step) {
                                if (!cut_) time_.at(20ms, std::move(step));
                              },
                          .time_limit = 1000ms}};
  std::vector<std::chrono::milliseconds> told_;
  TimedRegistry registry_{memory_, time_, [this](std::chrono::duration<double> time) {
                            told_.push_back(std::chrono::round<std::chrono::milliseconds>(time));
                          }};
};

TEST_F(TimedRegistryTest, TellsHowLongEachAnswerTook) {
  LeaseId lease = 0;
  bool is_made = false;
  registry_.grant(3000ms, [&](const RegistryResult<RegistryLease>& result) {
    lease = std::get<RegistryLease>(result).id;
  });
  time_.advance(50ms);
  ASSERT_NE(lease, 0);
  registry_.commit(
      {.conditions = {}, .changes = {RegistryPut{"a", "b", lease}}},
      [&](const RegistryResult<RegistryCommit>& result) { is_made = std::get<RegistryCommit>(result).made; });
  registry_.keep_alive(lease, [](const auto&) {});
  registry_.range("a", [](const auto&) {});
  registry_.revoke(lease, [](const auto&) {});
  time_.advance(50ms);
  EXPECT_TRUE(is_made);
  EXPECT_THAT(told_, ElementsAre(40ms, 40ms, 40ms, 40ms, 40ms)) << "there and back";
}

TEST_F(TimedRegistryTest, ARefusalIsAnAnswerAndSilenceIsNone) {
  std::vector<RegistryFailure::Kind> failures;
  const auto failed = [&](const RegistryResult<RegistryLease>& result) {
    failures.push_back(std::get<RegistryFailure>(result).kind);
  };
  registry_.keep_alive(4711, failed);
  time_.advance(50ms);
  EXPECT_THAT(told_, ElementsAre(40ms));
  cut_ = true;
  registry_.keep_alive(4711, failed);
  time_.advance(2000ms);
  memory_.expire();
  EXPECT_THAT(failures, ElementsAre(RegistryFailure::Kind::no_lease, RegistryFailure::Kind::unreachable));
  EXPECT_THAT(told_, ElementsAre(40ms)) << "that nobody answers is another metric's";
}

TEST_F(TimedRegistryTest, AWatchIsHandedOn) {
  std::vector<std::string> seen;
  const auto watch = registry_.watch("a", 1, [&](const RegistryResult<RegistryNews>& result) {
    for (const RegistryEvent& event : std::get<RegistryNews>(result).events) seen.push_back(event.entry.key);
  });
  registry_.commit({.conditions = {}, .changes = {RegistryPut{"a1", "b"}}}, [](const auto&) {});
  time_.advance(200ms);
  EXPECT_THAT(seen, ElementsAre("a1"));
}

}  // namespace
}  // namespace vigil::cluster
