#include "engine/memory/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/memory/looked_through.h"

namespace vigil::memory {
namespace {

using testing::an_hour;
using testing::Happens;
using testing::kNoon;
using testing::kSecond;
using testing::look_through;
using testing::Searched;
using Verdict = Search::Verdict;

/// Pages of which nobody has a sketch: all of their tokens are said to stand out.
std::vector<SearchedPage> without_sketches(std::vector<SearchedPage> pages, std::size_t first,
                                           std::size_t last) {
  for (std::size_t page = first; page < last; ++page)
    for (SearchedPage::Patch& patch : pages[page].patches) patch.standing_out = patch.tokens;
  return pages;
}

TEST(SearchTest, APageWithoutASketchIsReadWholeForTheFirstLook) {
  const Happens event{1000, 1010};
  const std::vector<SearchedPage> sketched = an_hour();
  const std::vector<SearchedPage> some = without_sketches(sketched, 120, 130);
  const auto search = [&](const std::vector<SearchedPage>& pages) {
    return look_through(pages, {}, [&](const Look& look) { return event.log_odds(look, pages); });
  };
  const Searched with = search(sketched), found = search(some);
  EXPECT_EQ(found.result.verdict, Verdict::yes);
  EXPECT_EQ(found.rounds, with.rounds);
  EXPECT_EQ(found.result.windows.front().wall, with.result.windows.front().wall);
  EXPECT_EQ(found.result.tokens, with.result.tokens + 10 * 8 * 9) << "nine more of each of their patches";
  // None has one, as of a camera of which nobody said what stands out: it is found, for all of the tokens.
  const Searched none = search(without_sketches(sketched, 0, sketched.size()));
  EXPECT_EQ(none.result.verdict, Verdict::yes);
  EXPECT_EQ(none.rounds, with.rounds);
  EXPECT_GE(none.result.tokens, 3600 * 10);
  for (const Look& look : none.looks) EXPECT_EQ(look.is_brief, look.id <= none.rounds[0]);
}

TEST(SearchTest, FindsTheWindowByWhatStandsOutAndReadsThatWhole) {
  const std::vector<SearchedPage> pages = an_hour();
  const Happens event{1000, 1010};
  const Searched found = look_through(pages, {.finds_moment = true},
                                      [&](const Look& look) { return event.log_odds(look, pages); });
  EXPECT_EQ(found.result.verdict, Verdict::yes);
  // Two of the four show it, and there are looks enough for each of their patches.
  EXPECT_EQ(found.rounds, (std::vector<std::size_t>{446, 4, 4, 78}))
      << "brief looks, whole ones, their neighbours, moments";
  ASSERT_EQ(found.result.windows.size(), 4U);
  const history::WallRange& best = found.result.windows.front().wall;
  EXPECT_LE(best.from, kNoon + 1000 * kSecond);
  EXPECT_GE(best.to, kNoon + 1010 * kSecond);
  EXPECT_EQ(best.to - best.from, 40 * kSecond);
  ASSERT_TRUE(found.result.moment);
  EXPECT_EQ(*found.result.moment, kNoon + 1000 * kSecond);
  EXPECT_EQ(found.result.tokens, 3600 + 4 * 400 + 4 * 80);
  EXPECT_EQ(found.result.all_tokens, 446 * 400);
  EXPECT_EQ(found.result.failed, 0U);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_LE(found.result.windows[i].log_odds, found.result.windows[i - 1].log_odds);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_GE(std::abs(found.result.windows[i].wall.from - found.result.windows[j].wall.from),
                24 * kSecond);
  }
}

/// Seconds after noon.
std::vector<std::int64_t> seconds_of(const std::vector<std::int64_t>& moments) {
  std::vector<std::int64_t> seconds;
  for (const std::int64_t moment : moments) seconds.push_back((moment - kNoon) / kSecond);
  return seconds;
}

/// Looks for moments: those after the windows that were read whole.
std::size_t looks_for_moments(const Searched& searched) {
  std::size_t looks = 0;
  for (std::size_t round = 2; round < searched.rounds.size(); ++round) looks += searched.rounds[round];
  return looks;
}

Searched moments_of(const std::vector<SearchedPage>& pages, const std::vector<Happens>& events,
                    const Search::Options& options = {.asks_neighbours = false, .finds_moment = true}) {
  return look_through(pages, options, [&](const Look& look) {
    double odds = -6;
    for (const Happens& event : events) odds = std::max(odds, event.log_odds(look, pages));
    return odds;
  });
}

TEST(SearchTest, EachWindowThatSaysYesTellsItsMoment) {
  const std::vector<SearchedPage> pages = an_hour();
  // The second one shows longest, so its window is the best; each is in two that begin 24 s apart.
  const Searched found = moments_of(pages, {{605, 609}, {1501, 1513}, {2802, 2807}},
                                    {.whole = 6, .asks_neighbours = false, .finds_moment = true});
  EXPECT_THAT(seconds_of(found.result.moments), ::testing::ElementsAre(605, 1501, 2802));
  ASSERT_TRUE(found.result.moment);
  EXPECT_EQ(*found.result.moment, kNoon + 1501 * kSecond);
  EXPECT_LE(looks_for_moments(found), 96U);
  EXPECT_EQ(found.result.tokens, 3600 + 6 * 400) << "what is looked at for moments was read already";
}

TEST(SearchTest, OneWindowHasAllLooksAndIsCutOffAfterEachPatch) {
  // Nothing else is long enough for a second window that says "Yes".
  const std::vector<SearchedPage> pages = an_hour(40);
  const Searched found = moments_of(pages, {{17, 19}});
  EXPECT_EQ(found.rounds, (std::vector<std::size_t>{1, 1, 39})) << "whole, it said so";
  EXPECT_THAT(seconds_of(found.result.moments), ::testing::ElementsAre(17));
  // "Yes" at first, and not in the middle: it is the first that counts.
  const Searched odd = look_through(pages, {.finds_moment = true}, [&](const Look& look) {
    std::size_t patches = 0;
    for (const Slice& slice : look.slices) patches += slice.last - slice.first;
    return patches == 5 || patches >= 30 ? 5.0 : -5.0;
  });
  EXPECT_THAT(seconds_of(odd.result.moments), ::testing::ElementsAre(4));
  // Only all of it says so: with its last patch it began.
  const Searched last = moments_of(pages, {{39, 40}});
  EXPECT_THAT(seconds_of(last.result.moments), ::testing::ElementsAre(39));
}

TEST(SearchTest, WhatIsThereWhenAWindowBeginsHasItsBegin) {
  const std::vector<SearchedPage> pages = an_hour(400);
  // It is there all the time. Windows from 0, 24, 48 and 72 on overlap.
  const Searched always = moments_of(pages, {{0, 400}});
  EXPECT_THAT(seconds_of(always.result.moments), ::testing::ElementsAre(0));
  // Those from 0, 80, 160 and 240 on do not.
  const Searched apart = moments_of(pages, {{0, 400}}, {.apart = 80 * kSecond, .finds_moment = true});
  EXPECT_THAT(seconds_of(apart.result.moments), ::testing::ElementsAre(0, 80, 160, 240));
}

TEST(SearchTest, OverlappingWindowsTellOneMomentOnce) {
  const std::vector<SearchedPage> pages = an_hour();
  // Windows from 976 and from 1000 on show the first 8 s, or all; the later begins with it.
  for (const double length : {4.0, 10.0, 30.0, 60.0}) {
    const Searched found = moments_of(pages, {{1000, 1000 + length}});
    EXPECT_THAT(seconds_of(found.result.moments), ::testing::ElementsAre(1000)) << length;
    EXPECT_EQ(found.result.moment, found.result.moments.front()) << length;
  }
  // Exhaustive, hundreds of windows say "Yes".
  const Searched all =
      moments_of(pages, {{900, 940}, {2000, 2300}}, {.method = Method::exhaustive, .finds_moment = true});
  // Six looks each leave two patches of forty.
  EXPECT_THAT(seconds_of(all.result.moments), ::testing::ElementsAre(::testing::AnyOf(900, 901), 2000));
  EXPECT_EQ(all.result.moment, all.result.moments.back()) << "the longer one is the best window's";
  EXPECT_LE(looks_for_moments(all) + all.rounds[1], 96U);
}

TEST(SearchTest, MomentsOfManyEventsAreInOrderApartAndTrueWithinAPatch) {
  std::mt19937 random(20261130);
  const std::vector<SearchedPage> pages = an_hour();
  for (int round = 0; round < 40; ++round) {
    std::vector<Happens> events;
    for (int i = 0; i < 4; ++i) {
      const double from = 900.0 * i + static_cast<double>(random() % 800);
      events.push_back({from, from + 2 + static_cast<double>(random() % 6)});
    }
    // Each window has its share.
    for (const std::size_t moments : {24U, 48U, 200U}) {
      const Searched found = moments_of(pages, events, {.finds_moment = true, .moments = moments});
      ASSERT_LE(looks_for_moments(found), 2 * moments);
      std::vector<std::int64_t> expected;
      for (const Happens& event : events)
        for (const Search::Window& window : found.result.windows) {
          const double begin = static_cast<double>(window.wall.from - kNoon) * 1e-9;
          const double shown = std::min(event.to, begin + 40) - std::max(event.from, begin);
          if (shown >= 1) expected.push_back(std::llround(std::max(event.from, begin)));
        }
      std::sort(expected.begin(), expected.end());
      expected.erase(std::unique(expected.begin(), expected.end(),
                                 [](std::int64_t a, std::int64_t b) { return b - a < 24; }),
                     expected.end());
      const std::vector<std::int64_t> told = seconds_of(found.result.moments);
      ASSERT_EQ(told.size(), expected.size());
      for (std::size_t i = 0; i < told.size(); ++i) {
        ASSERT_GE(told[i], expected[i]);
        ASSERT_LE(told[i], expected[i] + (moments < 48 ? 1 : 0));
      }
      ASSERT_TRUE(found.result.moment);
      ASSERT_NE(std::find(found.result.moments.begin(), found.result.moments.end(), *found.result.moment),
                found.result.moments.end());
    }
  }
}

TEST(SearchTest, AWindowWhoseLooksComeToNothingTellsNoMoment) {
  const std::vector<SearchedPage> pages = an_hour();
  const std::vector<Happens> events = {{605, 609}, {1501, 1513}};
  std::size_t looks = 0;
  const auto search = [&](double lost_from, double lost_to) {
    looks = 0;
    return look_through(pages, {.asks_neighbours = false, .finds_moment = true},
                        [&](const Look& look) -> std::optional<double> {
                          const double begin = static_cast<double>(look.wall.from - kNoon) * 1e-9;
                          // The brief looks and the four whole ones come first.
                          if (++looks > 450 && begin >= lost_from && begin < lost_to) return std::nullopt;
                          return std::max(events[0].log_odds(look, pages), events[1].log_odds(look, pages));
                        });
  };
  const Searched best_lost = search(1400, 1600);
  EXPECT_EQ(best_lost.result.moment, std::nullopt);
  EXPECT_THAT(seconds_of(best_lost.result.moments), ::testing::ElementsAre(605));
  EXPECT_GT(best_lost.result.failed, 0U);
  const Searched all_lost = search(0, 3600);
  EXPECT_TRUE(all_lost.result.moments.empty());
  EXPECT_EQ(all_lost.result.verdict, Verdict::yes);
  EXPECT_LE(looks_for_moments(all_lost), 96U);
}

TEST(SearchTest, BelowTheThresholdsItIsNoOrNobodyIsSure) {
  const std::vector<SearchedPage> pages = an_hour(400);
  const auto verdict = [&](double odds) {
    return look_through(pages, {}, [&](const Look&) { return odds; }).result;
  };
  EXPECT_EQ(verdict(-0.1).verdict, Verdict::no);
  EXPECT_EQ(verdict(0).verdict, Verdict::unsure);
  EXPECT_EQ(verdict(2.9).verdict, Verdict::unsure);
  EXPECT_EQ(verdict(3).verdict, Verdict::yes);
  EXPECT_EQ(verdict(3).moment, std::nullopt) << "nobody asked for it";
}

// A brief look may be wrong; the whole one says.
TEST(SearchTest, WhatStandsOutOnlyChooses) {
  const std::vector<SearchedPage> pages = an_hour();
  const Searched found =
      look_through(pages, {}, [&](const Look& look) { return look.is_brief ? 9.0 : -9.0; });
  EXPECT_EQ(found.result.verdict, Verdict::no);
  EXPECT_EQ(found.rounds, (std::vector<std::size_t>{446, 4}));
}

TEST(SearchTest, WindowsCoverEveryPatchAndAreNoLongerThanTheModelKnows) {
  std::mt19937 random(20261129);
  const auto below = [&](std::uint32_t count) { return static_cast<std::int64_t>(random() % count); };
  for (int round = 0; round < 300; ++round) {
    std::vector<SearchedPage> pages;
    std::int64_t at = kNoon;
    const std::int64_t patches = 1 + below(200);
    for (std::int64_t i = 0; i < patches; ++i) {
      // Gaps of time, from none to an hour.
      if (below(20) == 0) at += below(3600) * kSecond;
      if (pages.empty() || below(9) == 0) pages.emplace_back();
      const std::int64_t length = kSecond / 2 * (1 + below(4));
      pages.back().patches.push_back({{at, at + length}, 1 + below(30), below(3)});
      at += length;
    }
    std::vector<std::vector<int>> seen(pages.size());
    for (std::size_t i = 0; i < pages.size(); ++i) seen[i].resize(pages[i].patches.size());
    const Searched all = look_through(pages, {.method = Method::exhaustive}, [&](const Look& look) {
      EXPECT_FALSE(look.slices.empty());
      std::int64_t first = -1, last = -1;
      for (const Slice& slice : look.slices)
        for (std::size_t i = slice.first; i < slice.last; ++i) {
          ++seen[slice.page][i];
          const std::int64_t from = pages[slice.page].patches[i].wall.from;
          EXPECT_GT(from, last) << "in the order of time";
          if (first < 0) first = from;
          last = from;
        }
      EXPECT_LT(last - first, 40 * kSecond);
      return -1.0;
    });
    for (const auto& page : seen)
      for (const int times : page) {
        ASSERT_GE(times, 1);
        ASSERT_LE(times, 6);
      }
    ASSERT_EQ(all.result.tokens, all.result.all_tokens);
    ASSERT_EQ(all.rounds.size(), 1U);
  }
}

TEST(SearchTest, WhatCannotBeReadCostsALook) {
  const std::vector<SearchedPage> pages = an_hour();
  const Happens event{1000, 1010};
  bool is_first = true;
  const Searched found =
      look_through(pages, {.finds_moment = true}, [&](const Look& look) -> std::optional<double> {
        if (!look.is_brief && std::exchange(is_first, false)) return std::nullopt;
        return event.log_odds(look, pages);
      });
  EXPECT_EQ(found.result.failed, 1U);
  EXPECT_EQ(found.result.windows.size(), 3U);
  const Searched none = look_through(pages, {}, [](const Look&) { return std::nullopt; });
  EXPECT_EQ(none.result.verdict, Verdict::no);
  EXPECT_TRUE(none.result.windows.empty());
  EXPECT_EQ(none.result.failed, 446U);
}

TEST(SearchTest, NothingToLookAtIsNo) {
  for (const Method method :
       {Method::windows, Method::compose, Method::exhaustive, Method::clusters, Method::rekv}) {
    const Searched none = look_through({}, {.method = method}, [](const Look&) { return 9.0; });
    EXPECT_EQ(none.result.verdict, Verdict::no);
    EXPECT_TRUE(none.rounds.empty());
  }
}

TEST(SearchTest, ByReKvAsManyTokensAreSeenAsByWindows) {
  const std::vector<SearchedPage> pages = an_hour();
  std::int64_t tokens = 0;
  for (const SearchedPage& page : pages)
    for (const SearchedPage::Patch& patch : page.patches) tokens += patch.tokens;
  const auto read_of = [&](Method method, std::int64_t most) {
    double share = 0;
    const Searched found =
        look_through(pages, {.method = method, .cluster_tokens = most}, [&](const Look& look) {
          if (method == Method::rekv) {
            EXPECT_TRUE(look.by_clusters);
            EXPECT_GT(look.rekv_share, 0);
            EXPECT_TRUE(share == 0 || look.rekv_share == share) << "every stretch alike";
            share = look.rekv_share;
          } else {
            EXPECT_EQ(look.rekv_share, 0);
          }
          return -5.0;
        });
    if (method == Method::rekv) {
      EXPECT_NEAR(static_cast<double>(found.result.tokens), share * static_cast<double>(tokens), 5);
    }
    return static_cast<double>(found.result.tokens);
  };
  const double windows = read_of(Method::windows, tokens);
  EXPECT_LT(windows, 0.2 * static_cast<double>(tokens)) << "or there is nothing to compare";
  EXPECT_NEAR(read_of(Method::rekv, tokens) / windows, 1, 0.2);
  EXPECT_NEAR(read_of(Method::rekv, tokens / 4) / windows, 1, 0.2) << "of several stretches together";
  // Of a minute all of it, and no more.
  const std::vector<SearchedPage> minute(pages.begin(), pages.begin() + 1);
  const Searched all = look_through(minute, {.method = Method::rekv}, [](const Look& look) {
    EXPECT_LE(look.rekv_share, 1);
    return -5.0;
  });
  EXPECT_LE(all.result.tokens, all.result.all_tokens);
}

TEST(SearchTest, ByClustersLongStretchesAreLookedAtAsTheyAre) {
  const std::vector<SearchedPage> pages = an_hour();
  std::int64_t tokens = 0, patches = 0;
  for (const SearchedPage& page : pages)
    for (const SearchedPage::Patch& patch : page.patches) tokens += patch.tokens, ++patches;
  const Happens event{3000, 3010};
  const auto log_odds = [&](const Look& look) {
    EXPECT_TRUE(look.by_clusters);
    EXPECT_FALSE(look.is_brief);
    return event.log_odds(look, pages);
  };
  const Searched once = look_through(
      pages, {.method = Method::clusters, .finds_moment = true, .cluster_tokens = tokens}, log_odds);
  EXPECT_EQ(once.rounds, std::vector<std::size_t>{1}) << "no moment is looked for";
  EXPECT_EQ(once.result.tokens, tokens);
  EXPECT_EQ(once.result.verdict, Verdict::yes);
  EXPECT_FALSE(once.result.moment);
  EXPECT_TRUE(once.result.moments.empty());
  // Stretches of so many tokens follow each other, and each patch is in one.
  const std::int64_t most = tokens / 4 + 1;
  const Searched parts = look_through(pages, {.method = Method::clusters, .cluster_tokens = most}, log_odds);
  ASSERT_GE(parts.looks.size(), 4U);
  EXPECT_LE(parts.looks.size(), 5U);
  std::int64_t seen = 0, last = std::numeric_limits<std::int64_t>::min();
  for (const Look& look : parts.looks) {
    std::int64_t own = 0;
    for (const Slice& slice : look.slices)
      for (std::size_t i = slice.first; i < slice.last; ++i, ++seen) {
        const SearchedPage::Patch& patch = pages[slice.page].patches[i];
        EXPECT_GE(patch.wall.from, last);
        last = patch.wall.from;
        own += patch.tokens;
      }
    EXPECT_LE(own, most);
  }
  EXPECT_EQ(seen, patches);
  EXPECT_EQ(parts.result.tokens, tokens);
  EXPECT_EQ(parts.result.verdict, Verdict::yes);
  EXPECT_LE(parts.result.windows.front().wall.from, 3010 * 1'000'000'000LL + pages[0].patches[0].wall.from);
}

TEST(SearchTest, WhereNothingStandsOutWindowsAllOverAreLookedAt) {
  std::vector<SearchedPage> quiet = an_hour();
  for (SearchedPage& page : quiet)
    for (SearchedPage::Patch& patch : page.patches) patch.standing_out = 0;
  const Searched found = look_through(quiet, {.asks_neighbours = false}, [](const Look&) { return 9.0; });
  EXPECT_EQ(found.rounds, std::vector<std::size_t>{4});
  EXPECT_EQ(found.result.verdict, Verdict::yes) << "it is there all the time";
  std::vector<std::int64_t> begins;
  for (const Look& look : found.looks)
    begins.push_back((look.wall.from - found.looks[0].wall.from) / 1'000'000'000);
  EXPECT_THAT(begins, ::testing::ElementsAre(0, ::testing::AllOf(::testing::Gt(800), ::testing::Lt(1000)),
                                             ::testing::AllOf(::testing::Gt(1700), ::testing::Lt(1900)),
                                             ::testing::AllOf(::testing::Gt(2600), ::testing::Lt(2800))));
  // As many as there are.
  std::vector<SearchedPage> short_one = {quiet.begin(), quiet.begin() + 2};
  EXPECT_EQ(look_through(short_one, {}, [](const Look&) { return -9.0; }).rounds,
            std::vector<std::size_t>{1});
}

TEST(SearchTest, ComposedWindowsAreAsLongAsOneAndInOrder) {
  const std::vector<SearchedPage> pages = an_hour();
  const Happens event{1000, 1010}, other{3000, 3020};
  const Searched found = look_through(pages, {.method = Method::compose}, [&](const Look& look) {
    return std::max(event.log_odds(look, pages), other.log_odds(look, pages));
  });
  EXPECT_EQ(found.rounds, (std::vector<std::size_t>{446, 1}));
  ASSERT_EQ(found.result.windows.size(), 1U);
  std::int64_t last = 0, patches = 0;
  for (const Slice& slice : found.looks.back().slices)
    for (std::size_t i = slice.first; i < slice.last; ++i) {
      EXPECT_GT(pages[slice.page].patches[i].wall.from, last);
      last = pages[slice.page].patches[i].wall.from;
      ++patches;
    }
  EXPECT_LE(patches, 40);
  EXPECT_GE(patches, 30);
  EXPECT_EQ(found.result.verdict, Verdict::yes);
  EXPECT_EQ(found.result.tokens, 3600 + 10 * patches);
}

TEST(SearchTest, NonsenseIsRefused) {
  EXPECT_THROW(Search({}, {.length = 0}), std::invalid_argument);
  EXPECT_THROW(Search({}, {.step = -1}), std::invalid_argument);
  EXPECT_THROW(Search({}, {.whole = 0}), std::invalid_argument);
  const std::vector<SearchedPage> pages = an_hour(80);
  Search one(pages, {});
  const std::vector<Look> looks = one.next();
  EXPECT_THROW(one.hear(looks.back().id + 1, 1), std::invalid_argument);
  EXPECT_THROW(one.next(), std::logic_error) << "they were not told yet";
  one.hear(looks[0].id, 1);
  EXPECT_THROW(one.hear(looks[0].id, 1), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::memory
