// What `vigil bench cameras` decides and counts by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/bench/capacity_search.h"
#include "actors/bench/metric_sum.h"
#include "actors/bench/stage_log.h"
#include "actors/bench/statistics.h"
#include "actors/bench/window_log.h"
#include "actors/status/metrics.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> hundred;
  for (int i = 100; i > 0; --i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 0.95), 95);
  EXPECT_EQ(percentile(hundred, 0.5), 50);
  EXPECT_EQ(percentile(hundred, 1), 100);
  EXPECT_EQ(percentile(hundred, 0), 1);
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({7}, 0.95), 7);
  EXPECT_EQ(percentile({}, 0.95), 0);
}

/// What a search tries if so many hold, and what it finds.
std::pair<std::vector<int>, int> search(int start, int most, int capacity) {
  CapacitySearch search(start, most);
  std::vector<int> tried;
  while (const auto number = search.next()) {
    tried.push_back(*number);
    search.tried(*number <= capacity);
  }
  return {tried, search.held()};
}

TEST(CapacitySearch, DoublesThenHalvesTheDifference) {
  EXPECT_THAT(search(2, 100, 11), Pair(ElementsAre(2, 4, 8, 16, 12, 10, 11), 11));
  EXPECT_THAT(search(4, 100, 3), Pair(ElementsAre(4, 2, 3), 3)) << "too many at the start";
  EXPECT_THAT(search(3, 20, 1000), Pair(ElementsAre(3, 6, 12, 20), 20)) << "never more than it may";
  EXPECT_THAT(search(1, 1, 1), Pair(ElementsAre(1), 1));
  EXPECT_THAT(search(4, 8, 0), Pair(ElementsAre(4, 2, 1), 0)) << "not even one";
}

TEST(CapacitySearch, IsCloseForLargeNumbersAndExactForSmallOnes) {
  for (int capacity = 1; capacity < 300; ++capacity) {
    const auto [tried, held] = search(5, 500, capacity);
    EXPECT_LE(held, capacity);
    EXPECT_LE(capacity - held, std::max(0, held / 16)) << capacity;
    EXPECT_LE(tried.size(), 14U) << capacity;
  }
}

TEST(CapacitySearch, RefusesWhatMakesNoSense) {
  EXPECT_THROW(CapacitySearch(0, 4), std::invalid_argument);
  EXPECT_THROW(CapacitySearch(5, 4), std::invalid_argument);
  CapacitySearch search(1, 1);
  search.tried(true);
  EXPECT_THROW(search.tried(true), std::logic_error);
}

AnsweredWindow answered(const std::string& camera, std::chrono::milliseconds at) {
  AnsweredWindow window;
  window.camera = camera;
  window.answered = config::Clock::TimePoint(1h) + at;
  return window;
}

TEST(LeastShare, ComparesTheCameraThatWasServedLeastWithTheMedianWithinEverySpan) {
  const config::Clock::TimePoint begin(1h);
  std::vector<AnsweredWindow> windows;
  const std::vector<std::string> cameras = {"a", "b", "c"};
  for (int second = 0; second < 120; second += 2)
    for (const std::string& camera : cameras)
      windows.push_back(answered(camera, std::chrono::seconds(second)));
  EXPECT_EQ(least_share(windows, cameras, begin, begin + 120s, 60s), 1.0);
  EXPECT_EQ(least_share(windows, cameras, begin, begin + 59s, 60s), std::nullopt) << "no whole minute";
  EXPECT_EQ(least_share(windows, {"a", "b", "silent"}, begin, begin + 120s, 60s), 0.0);

  // Over the two minutes b has 45 of 60, but within one minute only 15 of 30.
  std::erase_if(windows, [&](const AnsweredWindow& window) {
    const auto at = window.answered - begin;
    return window.camera == "b" && at >= 40s && at < 70s;
  });
  EXPECT_EQ(least_share(windows, cameras, begin, begin + 120s, 60s), 0.5);
  EXPECT_EQ(least_share({}, cameras, begin, begin + 120s, 60s), std::nullopt) << "nothing to compare with";
}

TEST(WindowLog, SplitsAWindowsLatency) {
  ManualClock clock;
  const auto due = clock.now();
  WindowAnswers window;
  window.camera = camera("gate");
  window.captured = {due, clock.wall()};
  window.encoded = {due + 100ms, due + 350ms};
  WindowLog log;
  log.add(window, {due + 400ms, due + 900ms});
  const auto windows = log.between(due, due + 1s);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].camera, "gate");
  EXPECT_NEAR(windows[0].latency, 0.9, 1e-9);
  EXPECT_NEAR(windows[0].vision, 0.25, 1e-9);
  EXPECT_NEAR(windows[0].prefill, 0.5, 1e-9);
  EXPECT_NEAR(windows[0].waiting, 0.15, 1e-9);
  EXPECT_THAT(log.between(due, due + 900ms), IsEmpty()) << "the end is not part of it";
  EXPECT_EQ(log.between(due + 900ms, due + 901ms).size(), 1U) << "the begin is";
  log.forget_before(due + 901ms);
  EXPECT_THAT(log.between(due, due + 1s), IsEmpty());
}

TEST(StageLog, GivesWhatEndedWithinAndForgetsWhatWasBefore) {
  ManualClock clock;
  StageLog log;
  const auto begin = clock.now();
  for (const auto span : {100ms, 200ms, 300ms}) {
    const StageTimer timer(log, clock);
    clock.advance(span);
  }
  EXPECT_THAT(log.take(begin + 300ms, begin + 600ms), ElementsAre(::testing::DoubleNear(0.2, 1e-9)));
  EXPECT_THAT(log.take(begin, begin + 1s), ElementsAre(::testing::DoubleNear(0.3, 1e-9)));
}

TEST(MetricBy, AddsUpByALabel) {
  Metrics metrics;
  metrics.frames_dropped("a \"quoted\" one", "late", 2);
  metrics.frames_dropped("gate", "late", 3);
  metrics.frames_dropped("gate", "no_credit", 4);
  metrics.windows("answered", 7);
  metrics.generated(1, 5);
  const std::string page = metrics.text();
  EXPECT_THAT(metric_by(page, "vigil_frames_dropped_total", "reason"),
              UnorderedElementsAre(Pair("late", 5), Pair("no_credit", 4)));
  EXPECT_THAT(metric_by(page, "vigil_frames_dropped_total", "camera"),
              UnorderedElementsAre(Pair("a \"quoted\" one", 2), Pair("gate", 7)));
  EXPECT_THAT(metric_by(page, "vigil_windows_total", "outcome"), ElementsAre(Pair("answered", 7)));
  EXPECT_THAT(metric_by(page, "vigil_generation_tokens_total", "camera"), ElementsAre(Pair("", 5)));
  EXPECT_THAT(metric_by(page, "vigil_windows", "outcome"), IsEmpty()) << "another metric's beginning";
}

}  // namespace
}  // namespace vigil::actors
