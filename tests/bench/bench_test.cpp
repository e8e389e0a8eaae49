// What `vigil bench cameras` decides and counts by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/status/metrics.h"
#include "bench/cache_size.h"
#include "bench/capacity_search.h"
#include "bench/losses.h"
#include "bench/metric_sum.h"
#include "bench/pipeline_figures.h"
#include "bench/stage_log.h"
#include "bench/statistics.h"
#include "bench/window_log.h"
#include "tests/actors/fakes.h"

namespace vigil::bench {
namespace {

using namespace actors;
using namespace actors::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
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
  window.answered = base::Clock::TimePoint(1h) + at;
  return window;
}

TEST(LeastShare, ComparesTheCameraThatWasServedLeastWithTheMedianWithinEverySpan) {
  const base::Clock::TimePoint begin(1h);
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
  window.watch = watch("gate");
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
  metrics.camera_added(*watch("a \"quoted\" one"));
  metrics.camera_added(*watch("gate"));
  metrics.frames_dropped("a \"quoted\" one", "late", 2);
  metrics.frames_dropped("gate", "late", 3);
  metrics.frames_dropped("gate", "no_credit", 4);
  metrics.windows("answered", 7);
  metrics.generated(1, 5, 0);
  const std::string page = metrics.text();
  EXPECT_THAT(metric_by(page, "vigil_frames_dropped_total", "reason"),
              IsSupersetOf({Pair("late", 5), Pair("no_credit", 4)}));
  EXPECT_THAT(metric_by(page, "vigil_frames_dropped_total", "camera"),
              UnorderedElementsAre(Pair("a \"quoted\" one", 2), Pair("gate", 7)));
  EXPECT_THAT(metric_by(page, "vigil_windows_total", "outcome"), IsSupersetOf({Pair("answered", 7)}));
  EXPECT_THAT(metric_by(page, "vigil_generation_tokens_total", "camera"), ElementsAre(Pair("", 5)));
  EXPECT_THAT(metric_by(page, "vigil_windows", "outcome"), IsEmpty()) << "another metric's beginning";
}

TEST(Losses, AreEveryWindowWithoutAnswersAndEveryDroppedFrame) {
  Metrics metrics;
  metrics.camera_added(*watch("gate"));
  metrics.windows("answered", 7);
  EXPECT_FALSE(losses(metrics.text()).any());
  metrics.windows("overtaken", 1);
  metrics.windows("failed", 2);
  const Losses before = losses(metrics.text());
  EXPECT_TRUE(before.any());
  EXPECT_EQ(before.windows_lost(), 3);

  metrics.windows("answered", 7);
  EXPECT_FALSE(since(before, losses(metrics.text())).any()) << "nothing after that";
  metrics.windows("failed", 1);
  metrics.windows("out_of_memory", 4);
  const Losses after = since(before, losses(metrics.text()));
  EXPECT_THAT(after.windows, UnorderedElementsAre(Pair("failed", 1), Pair("out_of_memory", 4)));
  EXPECT_EQ(after.windows_lost(), 5);

  metrics.frames_dropped("gate", "late", 3);
  const Losses frames = since(losses(""), losses(metrics.text()));
  EXPECT_THAT(frames.frames, ElementsAre(Pair("late", 3)));
}

TEST(Losses, ToADeviceAreTold) {
  const auto lost = [](auto count) {
    Metrics metrics;
    metrics.camera_added(*watch("gate"));
    count(metrics);
    return losses(metrics.text()).to_a_device();
  };
  EXPECT_TRUE(lost([](Metrics& metrics) { metrics.windows("device_lost", 1); }));
  EXPECT_TRUE(lost([](Metrics& metrics) { metrics.frames_dropped("gate", "device_lost", 1); }));
  EXPECT_TRUE(lost([](Metrics& metrics) { metrics.frames_dropped("gate", "device_down", 1); }));
  EXPECT_FALSE(lost([](Metrics& metrics) {
    metrics.windows("out_of_memory", 1);
    metrics.frames_dropped("gate", "queue_full", 1);
  }));
}

/// Of a camera of which a window was due every second for so many, answered after as many milliseconds.
PipelineFigures figures(double due, const std::vector<int>& latencies) {
  PipelineFigures figures;
  figures.cameras = 1;
  figures.due = due;
  for (const int latency : latencies) {
    figures.windows.push_back(answered("gate", std::chrono::seconds(figures.windows.size())));
    figures.windows.back().latency = latency / 1000.0;
  }
  return figures;
}

TEST(PipelineFigures, AreHeldIfWindowsAreAnsweredWithinTheirStride) {
  std::vector<int> latencies(100, 300);
  EXPECT_TRUE(figures(100, latencies).held(1));
  EXPECT_FALSE(figures(100, latencies).held(0.2));
  std::fill_n(latencies.begin(), 5, 2000);
  EXPECT_TRUE(figures(100, latencies).held(1)) << "95 of 100 are";
  latencies[5] = 2000;
  EXPECT_FALSE(figures(100, latencies).held(1));
  EXPECT_TRUE(figures(5, {300, 300, 300, 300}).held(1)) << "one is under way";
  EXPECT_FALSE(figures(5, {300, 300, 300}).held(1));
}

TEST(PipelineFigures, AreNotHeldIfAWindowOrAFrameIsLostWhateverTheReason) {
  for (const char* outcome : {"overtaken", "failed", "out_of_memory", "device_lost"}) {
    PipelineFigures lost = figures(10, std::vector<int>(10, 300));
    ASSERT_TRUE(lost.held(1));
    lost.lost.windows[outcome] = 1;
    EXPECT_FALSE(lost.held(1)) << outcome;
  }
  PipelineFigures lost = figures(10, std::vector<int>(10, 300));
  lost.lost.frames["queue_full"] = 2;
  EXPECT_FALSE(lost.held(1));
}

TEST(PipelineFigures, AreHeldOnlyIfWhatIsToldComesWithinTheStrideToo) {
  PipelineFigures told = figures(10, std::vector<int>(10, 300));
  told.stages["alerts"] = {};
  EXPECT_TRUE(told.held(1)) << "nothing has to be";
  told.alerts_due = 10;
  EXPECT_FALSE(told.held(1));
  told.stages["alerts"] = std::vector<double>(8, 0.9);
  EXPECT_TRUE(told.held(1)) << "two are under way";
  told.stages["alerts"] = std::vector<double>(8, 1.1);
  EXPECT_FALSE(told.held(1));
  told.stages.clear();
  EXPECT_FALSE(told.held(1));
}

TEST(TokensWithin, AreThoseWhoseKeysAndValuesFit) {
  model::TextConfig text;
  text.num_hidden_layers = 2;
  text.num_key_value_heads = 3;
  text.head_dim = 16;
  constexpr std::uint64_t kToken = 2 * 4 * 2 * 3 * 16;
  EXPECT_EQ(tokens_within(text, 10 * kToken), 10);
  EXPECT_EQ(tokens_within(text, 10 * kToken - 1), 9);
}

TEST(CacheFor, HasRoomForTheLongestWindowsWithFullAnswers) {
  // 28 by 28 pixels and two frames a token.
  const model::Preprocessor preprocessor({}, {});
  const auto size = [](const config::CameraSettings& camera) {
    return camera.name == "small" ? model::PictureSize{56, 56} : model::PictureSize{280, 140};
  };
  const auto cache = [&](const std::vector<config::CameraSettings>& cameras, int windows) {
    return cache_for(cameras, preprocessor, size, windows);
  };
  // 4 s at 2 frames a second.
  config::CameraSettings small = *camera("small");
  const std::int64_t around = cache({small}, 1) - std::int64_t{4} * 4;
  EXPECT_GT(around, 0) << "the prompt";
  EXPECT_EQ(cache({small}, 24), 24 * cache({small}, 1));
  EXPECT_EQ(cache({*camera("large")}, 1), around + std::int64_t{4} * 50);
  EXPECT_EQ(cache({small, *camera("large"), small}, 1), cache({*camera("large")}, 1));

  small.stream.window.length = 40s;
  EXPECT_EQ(cache({small}, 1), around + std::int64_t{40} * 4);
  const std::int64_t one_rule = cache({small}, 1);
  small.rules[0].max_tokens = 64;
  EXPECT_EQ(cache({small}, 1), one_rule) << "it does not explain";
  small.rules[0].explain = true;
  EXPECT_EQ(cache({small}, 1), one_rule + 63);
  small.rules.push_back(small.rules[0]);
  EXPECT_GT(cache({small}, 1), one_rule + std::int64_t{2} * 63);
}

}  // namespace
}  // namespace vigil::bench
