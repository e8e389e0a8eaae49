#include "engine/memory/coverage.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::memory {
namespace {

using history::WallRange;
using Gaps = std::vector<KnownGap>;
using Ranges = std::vector<WallRange>;

TEST(Coverage, WhatIsMissingIsToldWithItsReason) {
  const Ranges there{{100, 199}, {300, 399}};
  EXPECT_EQ(cover({0, 399}, there, {}, 0), (Coverage{0.5, {{{0, 99}, Gap::down}, {{200, 299}, Gap::down}}}));
  const Gaps known{{{50, 149}, Gap::evicted}, {{200, 249}, Gap::damaged}, {{240, 260}, Gap::erased}};
  EXPECT_EQ(cover({0, 399}, there, known, 0), (Coverage{0.5,
                                                        {{{0, 49}, Gap::down},
                                                         {{50, 99}, Gap::evicted},
                                                         {{200, 239}, Gap::damaged},
                                                         {{240, 260}, Gap::erased},
                                                         {{261, 299}, Gap::down}}}));
  EXPECT_EQ(cover({120, 180}, there, known, 0), (Coverage{1, {}}));
  EXPECT_EQ(cover({0, 99}, {}, known, 0), (Coverage{0, {{{0, 49}, Gap::down}, {{50, 99}, Gap::evicted}}}));
}

TEST(Coverage, PatchesThatFollowWithSomeJitterLeaveNoGap) {
  const Ranges there{{0, 99}, {105, 199}, {190, 250}, {300, 400}};
  EXPECT_EQ(cover({0, 400}, there, {}, 5), (Coverage{1 - 49.0 / 401, {{{251, 299}, Gap::down}}}));
  EXPECT_EQ(cover({101, 103}, there, {}, 5), (Coverage{1, {}})) << "also within one that is bridged";
  EXPECT_EQ(cover({0, 400}, there, {}, 49).gaps, Gaps{});
  EXPECT_EQ(cover({0, 403}, there, {}, 49).gaps, (Gaps{{{401, 403}, Gap::down}})) << "nothing follows it";
}

TEST(Coverage, NonsenseIsNothing) {
  EXPECT_EQ(cover({5, 4}, {}, {}, 0), Coverage{});
  const Ranges backwards{{9, 3}};
  EXPECT_EQ(cover({0, 9}, backwards, {}, 0), (Coverage{0, {{{0, 9}, Gap::down}}}));
}

// Compared with a look at each nanosecond.
TEST(Coverage, IsWhatALookAtEachMomentSays) {
  std::mt19937 random(20261129);
  const auto below = [&](std::uint32_t count) { return static_cast<std::int64_t>(random() % count); };
  const auto range = [&] {
    const std::int64_t from = below(120) - 20;
    return WallRange{from, from + below(30)};
  };
  for (int round = 0; round < 3000; ++round) {
    Ranges there;
    Gaps known;
    for (std::int64_t i = below(6); i > 0; --i) there.push_back(range());
    for (std::int64_t i = below(6); i > 0; --i) known.push_back({range(), static_cast<Gap>(below(7))});
    const WallRange asked{0, 50 + below(40)};
    const Coverage coverage = cover(asked, there, known, 0);
    std::int64_t covered = 0;
    std::size_t gap = 0;
    for (std::int64_t at = asked.from; at <= asked.to; ++at) {
      bool is_there = false;
      for (const WallRange& each : there) is_there = is_there || (each.from <= at && at <= each.to);
      while (gap < coverage.gaps.size() && coverage.gaps[gap].wall.to < at) ++gap;
      const bool is_gap = gap < coverage.gaps.size() && coverage.gaps[gap].wall.from <= at;
      ASSERT_NE(is_there, is_gap) << at;
      covered += is_there ? 1 : 0;
      if (is_there) continue;
      Gap why = Gap::down;
      for (const KnownGap& each : known)
        if (each.wall.from <= at && at <= each.wall.to) why = std::max(why, each.why);
      ASSERT_EQ(coverage.gaps[gap].why, why) << at;
    }
    ASSERT_NEAR(coverage.share, static_cast<double>(covered) / static_cast<double>(asked.to + 1), 1e-12);
  }
}

}  // namespace
}  // namespace vigil::memory
