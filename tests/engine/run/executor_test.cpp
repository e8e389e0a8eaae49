#include "engine/run/executor.h"

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::run {
namespace {

using Time = base::Clock::TimePoint;
using std::chrono::seconds;

class ManualClock final : public base::Clock {
 public:
  TimePoint now() const override { return time; }
  WallTime wall() const override { return {}; }
  TimePoint time{};
};

/// Pieces that are due in this order, and what was done.
struct Source final : WorkSource {
  Source(std::string called, std::vector<std::string>& log) : name(std::move(called)), done(log) {}
  std::optional<Time> due() const override {
    return pieces.empty() ? std::nullopt : std::optional(Time(seconds(pieces.front())));
  }
  void work(const Turn& turn) override {
    done.push_back(name + std::to_string(pieces.front()));
    pieces.pop_front();
    untils.push_back(turn.until);
  }
  std::optional<Time> gathers_until() const override { return gathers; }
  std::string name;
  std::vector<std::string>& done;
  std::optional<Time> gathers;
  std::deque<int> pieces;
  std::vector<Time> untils;
};

TEST(ExecutorTest, RunsTheMostUrgentPieceOfAllSources) {
  std::vector<std::string> done;
  Source vision("v", done), language("l", done);
  ManualClock clock;
  Executor executor(clock, {&vision, &language});
  EXPECT_FALSE(executor.next());
  EXPECT_FALSE(executor.run_one());
  vision.pieces = {5, 7, 9};
  language.pieces = {6, 8};
  while (executor.run_one()) {
  }
  EXPECT_EQ(done, (std::vector<std::string>{"v5", "l6", "v7", "l8", "v9"}));
}

TEST(ExecutorTest, WhoeverIsUrgentForeverKeepsNobodyEquallyUrgentWaiting) {
  std::vector<std::string> done;
  Source vision("v", done), language("l", done);
  ManualClock clock;
  Executor executor(clock, {&vision, &language});
  vision.pieces.assign(6, 1);
  language.pieces.assign(3, 1);
  for (int i = 0; i < 6; ++i) executor.run_one();
  EXPECT_EQ(done, (std::vector<std::string>{"v1", "l1", "v1", "l1", "v1", "l1"}));
}

TEST(ExecutorTest, APieceKnowsWhenAnothersIsDue) {
  std::vector<std::string> done;
  Source vision("v", done), language("l", done), other("o", done);
  ManualClock clock;
  Executor executor(clock, {&vision, &language, &other});
  vision.pieces = {5};
  language.pieces = {1, 2};
  other.pieces = {4};
  while (executor.run_one()) {
  }
  EXPECT_EQ(language.untils, (std::vector<Time>{Time(seconds(4)), Time(seconds(4))}))
      << "its own next is not";
  EXPECT_EQ(other.untils, std::vector<Time>{Time(seconds(5))});
  EXPECT_EQ(vision.untils, std::vector<Time>{Time::max()}) << "there is no other";
}

// So that its next one is larger, but only as long as others have work, and no longer than it says.
TEST(ExecutorTest, WhoGathersLetsOthersGoFirst) {
  std::vector<std::string> done;
  Source vision("v", done), language("l", done);
  ManualClock clock;
  Executor executor(clock, {&vision, &language});
  vision.pieces = {1, 2, 3};
  language.pieces = {5, 6, 7};
  vision.gathers = Time(seconds(4));
  clock.time = Time(seconds(3));
  executor.run_one();
  EXPECT_EQ(language.untils.back(), Time::max()) << "whoever gathers bounds nobody's piece";
  clock.time = Time(seconds(4));
  executor.run_one();
  vision.gathers = Time(seconds(9));
  executor.run_one();
  executor.run_one();
  EXPECT_EQ(done, (std::vector<std::string>{"l5", "v1", "l6", "l7"}));
  while (executor.run_one()) {
  }
  EXPECT_EQ(done.back(), "v3") << "nobody else has any";
}

}  // namespace
}  // namespace vigil::run
