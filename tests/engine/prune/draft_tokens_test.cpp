#include "engine/prune/draft_tokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/draft_golden.h"

namespace vigil::prune {
namespace {

using Tokens = std::vector<std::int32_t>;
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// Of a frame, what `ScoredFrame` borrows.
struct Frame {
  std::vector<std::int32_t> places;
  std::vector<float> to_before = {}, spread = {}, attention = {};
};

std::vector<ScoredFrame> window_of(const std::vector<Frame>& frames) {
  std::vector<ScoredFrame> window;
  for (const Frame& frame : frames)
    window.push_back({frame.places, frame.to_before, frame.spread, frame.attention});
  return window;
}

std::vector<double> scores(std::string_view selection, const std::vector<Frame>& frames) {
  return draft_scores(selection, window_of(frames));
}

Tokens kept(std::string_view selection, const std::vector<Frame>& frames, double share,
            std::uint64_t seed = 0) {
  return draft_tokens(selection, window_of(frames), {share, seed});
}

std::vector<std::int32_t> places(std::int32_t count) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// A frame of these masses, and nothing else known.
Frame seen(std::vector<float> attention) {
  Frame frame{places(static_cast<std::int32_t>(attention.size()))};
  frame.attention = std::move(attention);
  return frame;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double bound,
                 const std::string& what = "") {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], bound) << what << ' ' << i;
}

// Of scores in f32, of which a frame's may lie close together.
TEST(DraftTokensTest, KeepsWhatNumpyKeepsByTheEquations) {
  int compared = 0;
  for (const DraftGolden& now : DraftGoldenFile::read()) {
    const auto window = [&](std::size_t first, std::size_t count, bool early) {
      std::vector<ScoredFrame> frames;
      for (std::size_t f = first; f < first + count; ++f) {
        const DraftGolden::Frame& frame = now.frames.at(f);
        frames.push_back({frame.places, frame.to_before, frame.spread});
        if (!early) frames.back().attention = frame.attention;
      }
      return frames;
    };
    for (const DraftGolden::Scores& each : now.scores) {
      const std::string what =
          now.name + " from " + std::to_string(each.first) + ", " + std::to_string(each.frames);
      const auto whole = window(each.first, each.frames, false),
                 early = window(each.first, each.frames, true);
      expect_near(draft_scores("change", whole), each.change, 3e-6, what + " change");
      expect_near(draft_scores("hippo", whole), each.hippo, 1e-3, what + " hippo");
      expect_near(draft_scores("hippo", early), each.early, 1e-3, what + " early");
    }
    for (const DraftGolden::Kept& each : now.kept) {
      const bool is_early = each.selection == "early";
      EXPECT_EQ(draft_tokens(is_early ? "hippo" : each.selection, window(each.first, each.frames, is_early),
                             {each.share, 0}),
                each.tokens)
          << now.name << ' ' << each.selection << " from " << each.first << ", " << each.frames << " at "
          << each.share;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(DraftTokensTest, AFrameAloneHasNoNeighbours) {
  // Compared with a frame that the window does not have.
  const std::vector<Frame> alone{{places(4), {0.1F, 0.9F, -1, 0.5F}, {}, {4, 1, 3, 2}}};
  expect_near(scores("change", alone), {0, 0, 0, 0}, 0);
  EXPECT_EQ(kept("change", alone, 0.5), (Tokens{0, 1})) << "all alike: the earlier ones";
  expect_near(scores("hippo", alone),
              {1.5 / std::sqrt(1.25), -1.5 / std::sqrt(1.25), 0.5 / std::sqrt(1.25), -0.5 / std::sqrt(1.25)},
              1e-12, "attention alone");
  EXPECT_EQ(kept("hippo", alone, 0.5), (Tokens{0, 2}));
}

TEST(DraftTokensTest, WhatDoesNotDeviateAddsNothing) {
  // Each by as much as rounding makes of equal things.
  std::vector<Frame> still{{places(3), {}, {1e-13F, 0, 2e-13F}, {0.1F, 0.10000001F, 0.1F}},
                           {places(3), {1, 0.9999999F, 1.0000001F}, {0.5F, 0.5F, 0.5F}, {7, 7, 7}}};
  expect_near(scores("hippo", still), std::vector<double>(6, 0.0), 0);
  EXPECT_EQ(kept("hippo", still, 0.5), (Tokens{0, 1, 2}));
  expect_near(scores("change", still), std::vector<double>(6, 0.0), 0);
  EXPECT_EQ(kept("change", still, 0.5), (Tokens{0, 1, 2}));
  // A tenth of a percent is none of it, and one score that does not deviate leaves the others.
  still[1].attention = {7.007F, 7, 7};
  const double high = std::sqrt(2.0), low = -std::sqrt(0.5);
  expect_near(scores("hippo", still), {0, 0, 0, high, low, low}, 1e-3);
  still[0].spread = {1e-6F, 3e-6F, 1e-6F};
  expect_near(scores("hippo", still), {low, high, low, high, low, low}, 1e-3);
  // A single token of a frame is its mean.
  expect_near(scores("hippo", {{{3}, {}, {0.4F}, {9}}, {{3}, {-1}, {0}, {1}}}), {0, 0}, 0);
}

TEST(DraftTokensTest, OfEqualScoresTheEarlierTokenIsKept) {
  const std::vector<Frame> frames{seen({1, 2, 2, 1}), seen({2, 1, 1, 2})};
  EXPECT_EQ(kept("attention", frames, 1 / 8.0), (Tokens{1}));
  EXPECT_EQ(kept("attention", frames, 3 / 8.0), (Tokens{1, 2, 4}));
  EXPECT_EQ(kept("attention", frames, 5 / 8.0), (Tokens{0, 1, 2, 4, 7}));
  EXPECT_EQ(kept("attention", {seen({0, -0.0F, 0})}, 0.67), (Tokens{0, 1}));
}

// Places 0 to 3, of which each frame lacks another.
TEST(DraftTokensTest, ANeighbourThatWasPrunedDoesNotCount) {
  const std::vector<Frame> frames{
      {{0, 1, 3}}, {{0, 2, 3}, {0.5F, kUnknown, 0.25F}}, {{1, 2, 3}, {kUnknown, 0, 0.75F}}};
  // Token by token: after alone; none, so the mean of its frame's; after alone. Both, after, both; none,
  // before, before.
  expect_near(scores("change", frames), {0.5, 0.625, 0.75, 0.5, 1, 0.5, 0.625, 1, 0.25}, 1e-6);
  EXPECT_EQ(kept("change", frames, 0.3), (Tokens{2, 4, 7}));
  // The mean of its frame's adds nothing.
  const double step = 0.125 / std::sqrt((0.125 * 0.125 * 2) / 2);
  EXPECT_NEAR(scores("hippo", frames)[1], 0, 1e-12);
  EXPECT_NEAR(scores("hippo", frames)[0], -step, 1e-5);
  // Of the frame after, what this one does not have.
  expect_near(scores("change", {{{2}}, {{1, 2}, {0.5F, 0}}}), {1, 0.5, 1}, 1e-6);
  // A window is what it is, whatever was compared beyond it.
  expect_near(scores("change", {frames[1], frames[2]}), {0.625, 1, 0.25, 0.625, 1, 0.25}, 1e-6);
}

TEST(DraftTokensTest, AFrameOfWhichNothingIsKnownIsAsTheWindowIs) {
  const std::vector<Frame> frames{{{0, 1}}, {{0, 1}, {0.5F, 0}}, {{5}}, {{0, 1}}};
  expect_near(scores("change", frames), {0.5, 1, 0.5, 1, 0.75, 0.75, 0.75}, 1e-6);
  EXPECT_EQ(kept("change", frames, 0.5), (Tokens{1, 3, 4, 5}));
  expect_near(scores("change", {{{0, 1}}, {{}}, {{0, 1}}}), {0, 0, 0, 0}, 0);
  EXPECT_EQ(kept("hippo", {{{0, 1}}, {{}}, {{0, 1}}}, 0.25), (Tokens{0}));
}

TEST(DraftTokensTest, WhatIsNoNumberIsNotKnown) {
  for (const float none : {kUnknown, kInfinite, -kInfinite}) {
    const std::vector<Frame> frames{
        {places(4), {}, {1, none, 3, 5}, {1, 2, none, 6}},
        {places(4), {none, 0.5F, 0.25F, 0.75F}, {none, none, none, none}, {none, none, none, none}}};
    const std::vector<double> all = scores("hippo", frames);
    for (const double one : all) EXPECT_TRUE(std::isfinite(one));
    // The token without a spread adds what its attention and its change do.
    const double attention = std::sqrt(14 / 3.0), change = std::sqrt(1 / 24.0);
    EXPECT_NEAR(all[1], (2 - 3) / attention + 0 / change, 1e-6);
    EXPECT_NEAR(all[2], 0 / 1.0 + 0.25 / change, 1e-5) << "its spread is the mean, its attention not known";
    expect_near(scores("attention", frames), {1, 2, 3, 6, 0, 0, 0, 0}, 1e-12);
    EXPECT_EQ(kept("specvlm", frames, 0.25).size(), 2U);
    expect_near(scores("change", frames), {0.5, 0.5, 0.75, 0.25, 0.5, 0.5, 0.75, 0.25}, 1e-6);
  }
}

TEST(DraftTokensTest, WithoutAttentionItIsWhatIsKnownBefore) {
  std::vector<Frame> frames{{places(3), {}, {1, 2, 6}}, {places(3), {}, {3, 2, 1}}};
  const std::vector<double> early = scores("hippo", frames);
  EXPECT_EQ(kept("hippo", frames, 1 / 6.0), (Tokens{2}));
  // Of the first frame some is there: the other's scores stay.
  frames[0].attention = {9, 1, 1};
  const std::vector<double> half = scores("hippo", frames);
  EXPECT_EQ(std::vector<double>(half.begin() + 3, half.end()),
            std::vector<double>(early.begin() + 3, early.end()));
  EXPECT_GT(half[0], early[0]);
  for (const std::string_view needs : {"attention", "specvlm"})
    EXPECT_THROW(kept(needs, frames, 0.1), std::invalid_argument) << needs;
  frames[1] = {{}};
  EXPECT_EQ(kept("attention", frames, 0.4), (Tokens{0})) << "a frame without tokens needs none";
}

TEST(DraftTokensTest, ASharesTokensAreTheNearestNumberAndOneAtLeast) {
  const auto count = [](double share, std::int32_t tokens) {
    std::vector<float> masses;
    for (std::int32_t i = 0; i < tokens; ++i) masses.push_back(static_cast<float>(i * 7 % 11));
    const std::size_t first = kept("attention", {seen(masses)}, share).size();
    for (const std::string_view other : {"hippo", "specvlm", "change", "random"})
      EXPECT_EQ(kept(other, {seen(masses)}, share).size(), first)
          << other << ' ' << share << " of " << tokens;
    return first;
  };
  EXPECT_EQ(count(0, 1), 1U);
  EXPECT_EQ(count(0, 1000), 1U);
  EXPECT_EQ(count(1, 1000), 1000U);
  EXPECT_EQ(count(1, 1), 1U);
  EXPECT_EQ(count(0.1, 1030), 103U);
  EXPECT_EQ(count(0.1, 24), 2U);
  EXPECT_EQ(count(0.1, 25), 3U);
  EXPECT_EQ(count(1 - 0.9, 25), 3U) << "a share that was subtracted lies below its half";
  EXPECT_EQ(count(0.999, 10), 10U);
  for (const std::string_view each : kDraftSelections) {
    EXPECT_EQ(kept(each, {}, 0.5), Tokens{}) << each;
    EXPECT_EQ(kept(each, {{{}}, {{}}}, 1), Tokens{}) << each;
  }
}

TEST(DraftTokensTest, SpecvlmKeepsTheMassAndThenSpreadsOut) {
  // 0.4 of 30 are 12: three tokens have it. Of the seven others 0, 3 and 6.
  const std::vector<Frame> frames{seen({1, 5, 2, 1}), seen({5, 5, 3, 3, 3, 2})};
  EXPECT_EQ(kept("specvlm", frames, 0.6), (Tokens{0, 1, 4, 5, 6, 9}));
  EXPECT_EQ(kept("specvlm", frames, 0.4), (Tokens{0, 1, 4, 5})) << "one of the others: the first";
  EXPECT_EQ(kept("specvlm", frames, 0.2), (Tokens{1, 4})) << "the mass would be more";
  EXPECT_EQ(kept("specvlm", frames, 1), kept("all", frames, 0));
  EXPECT_EQ(kept("specvlm", {seen({0, 0, 0, 0, 0})}, 0.6), (Tokens{0, 1, 4})) << "no mass at all";
}

TEST(DraftTokensTest, FramesAreWholeAndEvenlySpaced) {
  std::vector<Frame> frames;
  std::int32_t tokens = 0;
  std::vector<Tokens> of_frame;
  for (std::int32_t f = 0; f < 10; ++f) {
    // Every fifth has none.
    const std::int32_t count = f % 5 == 2 ? 0 : 1 + f;
    frames.push_back({places(count)});
    if (count > 0) of_frame.emplace_back();
    for (std::int32_t i = 0; i < count; ++i) of_frame.back().push_back(tokens++);
  }
  const auto joined = [&](const std::vector<std::size_t>& which) {
    Tokens all;
    for (const std::size_t frame : which)
      all.insert(all.end(), of_frame[frame].begin(), of_frame[frame].end());
    return all;
  };
  EXPECT_EQ(kept("frame", frames, 0), joined({4}));
  EXPECT_EQ(kept("frame", frames, 0.1), joined({4}));
  EXPECT_EQ(kept("frame", frames, 0.25), joined({2, 6}));
  EXPECT_EQ(kept("frame", frames, 0.4), joined({1, 4, 6}));
  EXPECT_EQ(kept("frame", frames, 0.5), joined({1, 3, 5, 7}));
  EXPECT_EQ(kept("frame", frames, 1), joined({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(DraftTokensTest, RandomIsTheSeedsAndFair) {
  const std::vector<Frame> frames{{places(30)}, {places(20)}};
  EXPECT_EQ(kept("random", frames, 0.2, 5), kept("random", frames, 0.2, 5));
  EXPECT_NE(kept("random", frames, 0.2, 5), kept("random", frames, 0.2, 6));
  std::array<int, 50> times{};
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    for (const std::int32_t token : kept("random", frames, 0.2, seed))
      ++times.at(static_cast<std::size_t>(token));
  // Chi-square of 49 degrees, as if draws were independent: they deviate less.
  double deviation = 0;
  for (const int each : times) deviation += (each - 800.0) * (each - 800.0) / (800.0 * 0.8);
  EXPECT_LT(deviation, 85) << "one of a thousand";
  EXPECT_EQ(kept("all", frames, 0), places(50));
}

TEST(DraftTokensTest, WhateverIsKeptIsInOrderAndThereOnce) {
  std::mt19937 random(4);
  for (std::uint64_t run = 0; run < 300; ++run) {
    std::vector<Frame> frames(1 + random() % 5);
    std::int32_t tokens = 0;
    for (Frame& frame : frames) {
      for (std::int32_t place = 0; place < 12; ++place)
        if (random() % 3 != 0) frame.places.push_back(place);
      for (std::size_t i = 0; i < frame.places.size(); ++i) {
        const auto some = [&] { return random() % 9 == 0 ? kUnknown : static_cast<float>(random() % 5); };
        frame.to_before.push_back(some() / 5);
        frame.spread.push_back(some());
        frame.attention.push_back(some());
      }
      tokens += static_cast<std::int32_t>(frame.places.size());
    }
    const double share = static_cast<double>(random() % 11) / 10;
    for (const std::string_view each : kDraftSelections) {
      const Tokens chosen = kept(each, frames, share, run);
      EXPECT_TRUE(std::ranges::adjacent_find(chosen, std::greater_equal<>()) == chosen.end()) << each;
      if (tokens == 0) continue;
      ASSERT_FALSE(chosen.empty()) << each;
      EXPECT_GE(chosen.front(), 0);
      EXPECT_LT(chosen.back(), tokens);
      if (each != "frame" && each != "all") {
        EXPECT_NEAR(static_cast<double>(chosen.size()), std::max(1.0, share * tokens), 0.5) << each;
      }
    }
  }
}

TEST(DraftTokensTest, WhatHasNoSenseIsRefused) {
  const std::vector<Frame> good{seen({1, 2, 3})};
  EXPECT_THROW(kept("Hippo", good, 0.1), std::invalid_argument);
  EXPECT_THROW(kept("", good, 0.1), std::invalid_argument);
  for (const std::string_view other : {"specvlm", "frame", "random", "all", "none"})
    EXPECT_THROW(scores(other, good), std::invalid_argument) << other;
  for (const double share : {-0.1, 1.1, std::nan(""), HUGE_VAL})
    for (const std::string_view each : kDraftSelections)
      EXPECT_THROW(kept(each, good, share), std::invalid_argument) << each << ' ' << share;
  for (const Frame& bad : {Frame{{0, 1}, {1}}, Frame{{0, 1}, {}, {1, 2, 3}}, Frame{{0, 1}, {}, {}, {1}},
                           Frame{{1, 0}}, Frame{{1, 1}}})
    for (const std::string_view each : kDraftSelections) {
      EXPECT_THROW(kept(each, {seen({1}), bad}, 0.5), std::invalid_argument) << each;
    }
  EXPECT_THROW(scores("hippo", {Frame{{2, 1}}}), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::prune
