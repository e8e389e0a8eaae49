#include "media/timeline.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::media {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

MATCHER(Near, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-6;
}

constexpr double kNone = -1;

std::vector<double> times(Timeline& timeline, const std::vector<double>& timestamps, double duration = 0.1) {
  std::vector<double> all;
  for (const double timestamp : timestamps) {
    const auto given = timestamp == kNone ? std::optional<double>() : std::optional<double>(timestamp);
    for (const double seconds : timeline.push(given, duration)) all.push_back(seconds);
  }
  for (const double seconds : timeline.finish()) all.push_back(seconds);
  return all;
}

TEST(Timeline, CountsFromTheFirstFrame) {
  Timeline timeline(10);
  EXPECT_THAT(times(timeline, {7.0, 7.1, 7.35}), Pointwise(Near(), {0.0, 0.1, 0.35}));
  EXPECT_EQ(timeline.jumps(), 0u);
}

TEST(Timeline, CountsFromAGivenOrigin) {
  Timeline timeline(10, 2.0);
  EXPECT_THAT(times(timeline, {7.0, 7.1}), Pointwise(Near(), {5.0, 5.1}));
}

TEST(Timeline, FramesWithoutTimestampsFollowByTheirDuration) {
  Timeline none(10);
  EXPECT_THAT(times(none, {kNone, kNone, kNone}), Pointwise(Near(), {0.0, 0.1, 0.2}));
  Timeline some(10);
  EXPECT_THAT(times(some, {5.0, kNone, kNone, 5.35}), Pointwise(Near(), {0.0, 0.1, 0.2, 0.35}));
  Timeline late(10);
  EXPECT_THAT(times(late, {kNone, kNone, 50.0, 50.1}), Pointwise(Near(), {0.0, 0.1, 0.2, 0.3}));
}

TEST(Timeline, AClockSetBackGoesOnByOneFrame) {
  Timeline timeline(10);
  EXPECT_THAT(times(timeline, {100.0, 100.1, 0.0, 0.1, 0.2}), Pointwise(Near(), {0.0, 0.1, 0.2, 0.3, 0.4}));
  EXPECT_EQ(timeline.jumps(), 1u);
}

TEST(Timeline, AShortStepBackThatLastsIsClosedToo) {
  Timeline timeline(10);
  EXPECT_THAT(times(timeline, {0.0, 0.1, 5.0, 4.0, 4.1, 4.2}),
              Pointwise(Near(), {0.0, 0.1, 5.0, 5.1, 5.2, 5.3}));
}

TEST(Timeline, OneWildValueIsReplaced) {
  Timeline ahead(10);
  EXPECT_THAT(times(ahead, {0.0, 0.1, 9000.0, 0.3, 0.4}), Pointwise(Near(), {0.0, 0.1, 0.2, 0.3, 0.4}));
  EXPECT_EQ(ahead.jumps(), 1u);
  Timeline back(10);
  EXPECT_THAT(times(back, {3.0, 3.1, 0.5, 3.3, 3.4}), Pointwise(Near(), {0.0, 0.1, 0.2, 0.3, 0.4}));
  Timeline last(10);
  EXPECT_THAT(times(last, {0.0, 0.1, 9000.0}), Pointwise(Near(), {0.0, 0.1, 0.2}));
}

TEST(Timeline, ALastingGapIsKeptUpToTheLargest) {
  Timeline file(3600);
  EXPECT_THAT(times(file, {0.0, 0.1, 60.0, 60.1}), Pointwise(Near(), {0.0, 0.1, 60.0, 60.1}));
  EXPECT_EQ(file.jumps(), 1u);
  Timeline live(10);
  EXPECT_THAT(times(live, {0.0, 0.1, 60.0, 60.1}), Pointwise(Near(), {0.0, 0.1, 0.2, 0.3}));
}

TEST(Timeline, NeverRunsBackwardsNorLosesAFrame) {
  std::uint64_t state = 42;
  const auto random = [&] {
    return static_cast<double>((state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 40);
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<double> wild;
    for (int i = 0; i < 50; ++i)
      wild.push_back(random() < 4e6 ? kNone : std::fmod(random(), round % 2 ? 30.0 : 3000.0));
    Timeline timeline(10);
    const std::vector<double> seconds = times(timeline, wild);
    ASSERT_EQ(seconds.size(), wild.size());
    for (std::size_t i = 1; i < seconds.size(); ++i)
      ASSERT_GE(seconds[i], seconds[i - 1]) << "round " << round;
  }
}

}  // namespace
}  // namespace vigil::media
