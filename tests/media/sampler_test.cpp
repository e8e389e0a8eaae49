#include "media/sampler.h"

#include <limits>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::media {
namespace {

using testing::ElementsAre;

// The indices of the frames taken, if frame i is shown from times[i] to times[i + 1]; the last for 0.1 s.
std::vector<std::size_t> taken(Sampler sampler, const std::vector<double>& times) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (sampler.begins_before_range(times[i])) continue;
    if (sampler.begins_after_range(times[i])) break;
    if (sampler.take(times[i], i + 1 < times.size() ? times[i + 1] : times[i] + 0.1)) indices.push_back(i);
  }
  return indices;
}

std::vector<double> steady(int count, double interval) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(i * interval);
  return times;
}

TEST(Sampler, TakesTheFramesShownAtTheSampleTimes) {
  EXPECT_THAT(taken(Sampler(2, 0, {}), steady(12, 0.1)), ElementsAre(0, 5, 10));
  EXPECT_THAT(taken(Sampler(2, 0, {}), {0, 0.3, 0.7, 0.9, 1.05, 1.4}), ElementsAre(0, 1, 3));
}

TEST(Sampler, AFrameThatCoversManySampleTimesIsOneSample) {
  EXPECT_THAT(taken(Sampler(2, 0, {}), {0, 0.1, 10.2, 10.3, 10.4, 10.5}), ElementsAre(0, 1, 5));
}

TEST(Sampler, ARateAboveTheSourcesTakesEveryFrameOnce) {
  EXPECT_EQ(taken(Sampler(100, 0, {}), steady(10, 0.1)).size(), 10u);
  EXPECT_EQ(taken(Sampler(std::numeric_limits<double>::infinity(), 0, {}), steady(10, 0.1)).size(), 10u);
}

TEST(Sampler, RoundedTimestampsAtTheSourcesRateLoseNoFrame) {
  // 29.97 frames a second in whole milliseconds, as Matroska stores them.
  std::vector<double> times;
  for (int i = 0; i < 300; ++i) times.push_back(static_cast<double>((i * 1001 + 15) / 30) / 1000);
  EXPECT_EQ(taken(Sampler(30000.0 / 1001, 0, {}), times).size(), 300u);
}

TEST(Sampler, KeepsToItsRange) {
  EXPECT_THAT(taken(Sampler(2, 0.45, 1.2), steady(30, 0.1)), ElementsAre(5, 9));
  EXPECT_THAT(taken(Sampler(2, 5, {}), steady(30, 0.1)), ElementsAre());
}

TEST(Sampler, TellsAheadWhatItWillTake) {
  const std::vector<double> times = {0, 0.04, 0.2, 0.33, 0.5, 0.502, 0.77, 1.4, 2.6, 2.61, 3.0, 3.2};
  Sampler sampler(2, 0, {});
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    const bool wanted = sampler.wants(times[i], times[i + 1]);
    EXPECT_EQ(sampler.take(times[i], times[i + 1]), wanted) << i;
  }
}

TEST(Sampler, RefusesNonsense) {
  EXPECT_THROW(Sampler(0, 0, {}), std::invalid_argument);
  EXPECT_THROW(Sampler(-1, 0, {}), std::invalid_argument);
  EXPECT_THROW(Sampler(std::numeric_limits<double>::quiet_NaN(), 0, {}), std::invalid_argument);
  EXPECT_THROW(Sampler(2, -1, {}), std::invalid_argument);
  EXPECT_THROW(Sampler(2, 3, 3), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::media
