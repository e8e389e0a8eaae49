#include "actors/supervisor/turn_timer.h"

#include <map>

#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;

class TurnTimerTest : public ::testing::Test {
 protected:
  /// Whether a timer was set for it.
  bool await(base::Duration from_now) {
    const auto timer = timer_.await(now_ + from_now, now_);
    if (timer) under_way_.emplace(now_ + timer->delay, timer->number);
    return timer.has_value();
  }

  /// Time goes on to the next that rings: whether that counts.
  bool ring() {
    const auto next = under_way_.extract(under_way_.begin());
    now_ = next.key();
    return timer_.rings(next.mapped());
  }

  TurnTimer timer_;
  TurnTimer::TimePoint now_ = TurnTimer::TimePoint(1h);
  std::multimap<TurnTimer::TimePoint, std::uint64_t> under_way_;
};

TEST_F(TurnTimerTest, RingsWhenThereIsSomethingToDo) {
  const auto begun = now_;
  EXPECT_TRUE(await(300ms));
  EXPECT_TRUE(ring());
  EXPECT_EQ(now_, begun + 300ms);
  EXPECT_TRUE(await(-1s)) << "what is overdue";
  EXPECT_TRUE(ring());
  EXPECT_EQ(now_, begun + 310ms) << "waits for others that are due soon";
  EXPECT_TRUE(await(1h));
  EXPECT_TRUE(ring());
  EXPECT_EQ(now_, begun + 1310ms) << "and long before what is late";
}

TEST_F(TurnTimerTest, OneThatComesInTimeIsEnough) {
  EXPECT_TRUE(await(300ms));
  EXPECT_FALSE(await(300ms));
  EXPECT_FALSE(await(400ms));
  EXPECT_FALSE(await(295ms)) << "as good as";
  EXPECT_TRUE(await(200ms));
  EXPECT_FALSE(await(300ms));
}

TEST_F(TurnTimerTest, OneBeforeTheLastLeadsToNothing) {
  await(500ms);
  await(200ms);
  EXPECT_TRUE(ring());
  EXPECT_TRUE(await(900ms));
  EXPECT_FALSE(ring()) << "the first";
  EXPECT_FALSE(await(600ms)) << "the last is still under way";
  EXPECT_TRUE(ring());
  EXPECT_FALSE(timer_.rings(3)) << "twice";
}

// A timer that was late, as on a busy machine.
TEST_F(TurnTimerTest, OneThatIsOverdueIsNotWaitedFor) {
  await(100ms);
  now_ += 150ms;
  EXPECT_TRUE(await(100ms));
  EXPECT_FALSE(timer_.rings(1));
  EXPECT_TRUE(timer_.rings(2));
}

TEST_F(TurnTimerTest, FewAreUnderWayHoweverOftenSomethingIsDueSooner) {
  for (int i = 0; i < 10'000; ++i) {
    // What is due late is all that there is, until something is due soon.
    await(1min);
    await(base::Duration(1000 - i % 1000));
    ASSERT_LE(under_way_.size(), 200U);
    const auto until = now_ + 1ms;
    while (!under_way_.empty() && under_way_.begin()->first <= until) ring();
    now_ = until;
  }
}

}  // namespace
}  // namespace vigil::actors
