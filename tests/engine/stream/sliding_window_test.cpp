#include "engine/stream/sliding_window.h"

#include <cstdint>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::stream {
namespace sliding_window_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

model::VisualTokens patch(double seconds, double duration = 1, int width = 1) {
  model::VisualTokens tokens;
  tokens.kept = base::GridMask::all(1, width);
  tokens.seconds = seconds;
  tokens.duration = duration;
  return tokens;
}

/// Windows of 4 s every 2 s, at 2 frames a second.
constexpr SlidingWindow::Shape kShape{4, 2, 0.25};

/// "start-end:first..last".
std::vector<std::string> shown(const std::vector<SlidingWindow::Due>& windows) {
  std::vector<std::string> result;
  for (const auto& due : windows) {
    std::ostringstream text;
    text << due.start << '-' << due.end << ':' << due.patches.first << ".." << due.patches.last;
    result.push_back(text.str());
  }
  return result;
}

std::vector<std::string> all(SlidingWindow& window, const std::vector<double>& times, double duration = 1,
                             const SlidingWindow::Shape& shape = kShape) {
  std::vector<std::string> result;
  for (const double time : times)
    for (auto& text : shown(window.push(patch(time, duration), shape).due)) result.push_back(std::move(text));
  return result;
}

TEST(SlidingWindow, AWindowEndsAtEveryStride) {
  SlidingWindow window;
  EXPECT_THAT(all(window, {0, 1, 2, 3, 4, 5, 6, 7, 8}),
              ElementsAre("0-2:0..2", "0-4:0..4", "2-6:2..6", "4-8:4..8"));
  EXPECT_EQ(window.flush(), (SlidingWindow::Due{{6, 9}, 6, 9}))
      << "what was before 6 s is not there any more";
  EXPECT_EQ(window.flush(), std::nullopt) << "nothing new came since";
}

TEST(SlidingWindow, WantsNoMoreThanTheNextWindowShows) {
  SlidingWindow window;
  for (int i = 0; i < 1000; ++i) {
    window.push(patch(i), kShape);
    EXPECT_LE(window.size(), 4U);
    EXPECT_EQ(window.wanted_from() + static_cast<std::int64_t>(window.size()), i + 1);
  }
}

TEST(SlidingWindow, DuplicatesAndLatePatchesAreNoneOfTheStream) {
  SlidingWindow window;
  all(window, {0, 1});
  for (const double time : {1.0, 0.0, 0.5}) {
    const auto result = window.push(patch(time), kShape);
    EXPECT_TRUE(result.is_late);
    EXPECT_THAT(result.due, IsEmpty());
  }
  EXPECT_THAT(all(window, {2, 3}), ElementsAre("0-4:0..4"));
}

TEST(SlidingWindow, AGapClosesWhatWasBegunAndSkipsEmptyStrides) {
  SlidingWindow window;
  EXPECT_THAT(all(window, {0, 1, 2}), ElementsAre("0-2:0..2"));
  EXPECT_THAT(all(window, {21}), ElementsAre("0-4:0..3", "18-22:3..4"));
  EXPECT_THAT(all(window, {22, 23}), ElementsAre("20-24:3..6"));
}

TEST(SlidingWindow, AWindowShowsPicturesOfOneSize) {
  SlidingWindow window;
  all(window, {0, 1, 2});
  EXPECT_THAT(shown(window.push(patch(3, 1, 2), kShape).due), ElementsAre("0-4:3..4"));
  EXPECT_EQ(window.wanted_from(), 3);
}

TEST(SlidingWindow, PatchesThatStraddleTheStride) {
  SlidingWindow window;
  EXPECT_THAT(all(window, {0.5, 1.5, 2.5, 3.5}), ElementsAre("0-2:0..2", "0-4:0..4"));
}

TEST(SlidingWindow, FramesThatWereShownAMomentBeforeTheirTimeEndTheirStride) {
  SlidingWindow window;
  EXPECT_THAT(all(window, {0, 0.96}), ElementsAre("0-2:0..2")) << "it does not wait for the next patch";
  EXPECT_THAT(all(window, {1.92, 2.96}), ElementsAre("0-4:0..4"));
  EXPECT_THAT(all(window, {3.92, 4.96}), ElementsAre("2-6:2..6")) << "the patch at 1.92 s is the one of 2 s";
}

/// When patches of two frames begin, of a source of 5 frames a second that is sampled at 2 from `phase` on:
/// at the frame that is shown then. Each frame comes up to `jitter` seconds before or after its time.
std::vector<double> jittered(double phase, double jitter, std::uint32_t seed, int patches) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> off(-jitter, jitter);
  std::vector<double> result;
  double shown = 0;
  for (int frame = 1; std::ssize(result) < patches; ++frame) {
    const double next = frame * 0.2 + off(random);
    if (next > static_cast<double>(result.size())) result.push_back(phase + shown);
    shown = next;
  }
  return result;
}

TEST(SlidingWindow, OneEndsInEachStrideHoweverFramesJitter) {
  // Wherever its second 0 lies in the grid of strides, as after a reconnection.
  for (int phase = 0; phase < 20; ++phase) {
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      SCOPED_TRACE(::testing::Message() << "phase " << phase << ", seed " << seed);
      SlidingWindow window;
      std::vector<double> ends;
      for (const double time : jittered(phase * 0.05, 0.08, seed, 60)) {
        const auto due = window.push(patch(time), {6, 1, 0.25}).due;
        ASSERT_LE(due.size(), 1U) << "the older one would be overtaken, at " << time;
        for (const auto& each : due) ends.push_back(each.end);
      }
      ASSERT_EQ(ends.size(), 60U);
      for (std::size_t i = 1; i < ends.size(); ++i)
        ASSERT_EQ(ends[i], ends[i - 1] + 1) << "a stride in which none ends";
    }
  }
}

TEST(SlidingWindow, AFrameThatIsMissingMovesThoseAfterIt) {
  SlidingWindow window;
  const SlidingWindow::Shape shape{4, 1, 0.25};
  EXPECT_THAT(all(window, {0, 1, 2.5}, 1, shape), ElementsAre("0-1:0..1", "0-2:0..2", "0-3:0..3"));
  EXPECT_THAT(all(window, {3.5}, 1, shape), ElementsAre("0-4:0..4")) << "not where 2.5 and 3.5 would be";
  // A patch of one frame, before a change of size: the next one is half a patch early.
  EXPECT_THAT(all(window, {4.5, 5, 6}, 1, shape), ElementsAre("1-5:1..5", "2-6:2..6", "3-7:3..7"));
}

TEST(SlidingWindow, APatchLongerThanAStrideEndsOneWindow) {
  SlidingWindow window;
  EXPECT_THAT(all(window, {0, 3}, 3, {8, 1, 0.25}), ElementsAre("0-3:0..1", "0-6:0..2"));
}

TEST(SlidingWindow, RatesThatAreNoBinaryFractionLoseNothing) {
  SlidingWindow window;
  std::size_t windows = 0;
  double time = 0;
  for (int i = 0; i < 2500; ++i, time += 0.8)
    windows += window.push(patch(time, 0.8), {4, 2, 0.2}).due.size();
  EXPECT_EQ(windows, 1000U);
}

TEST(SlidingWindow, AWindowShorterThanAPatchShowsThePatchInWhichItLies) {
  SlidingWindow window;
  EXPECT_THAT(all(window, {0, 1, 2}, 1, {0.5, 0.5, 0.25}),
              ElementsAre("0.5-1:0..1", "1.5-2:1..2", "2.5-3:2..3"));
}

TEST(SlidingWindow, ANewLengthCountsFromTheNextWindowOn) {
  SlidingWindow window;
  std::vector<std::string> windows;
  const auto push = [&](double length, int second) {
    for (auto& text : shown(window.push(patch(second), {length, 2, 0.25}).due)) windows.push_back(text);
  };
  for (int second = 0; second < 8; ++second) push(4, second);
  for (int second = 8; second < 16; ++second) push(8, second);
  for (int second = 16; second < 20; ++second) push(2, second);
  EXPECT_THAT(windows, ElementsAre("0-2:0..2", "0-4:0..4", "2-6:2..6", "4-8:4..8", "2-10:6..10", "4-12:6..12",
                                   "6-14:6..14", "8-16:8..16", "16-18:16..18", "18-20:18..20"))
      << "a longer one grows from what is still wanted";
}

}  // namespace
}  // namespace sliding_window_test
}  // namespace vigil::stream
