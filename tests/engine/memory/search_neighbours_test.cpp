#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/memory/search.h"
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

/// Where a look begins, in seconds after noon.
std::int64_t begin_of(const Look& look) {
  return (look.wall.from - kNoon) / kSecond;
}

/// Windows that begin there say this, whatever is said of others.
struct SaysOnly {
  std::int64_t begin = 0;
  double log_odds = 0, others = -5;
  double operator()(const Look& look) const { return begin_of(look) == begin ? log_odds : others; }
};

TEST(SearchNeighboursTest, AWindowThatSaysYesByItselfIsNotBelieved) {
  const std::vector<SearchedPage> pages = an_hour();
  const SaysOnly wrong{800, 7.5};
  const Searched found = look_through(pages, {}, wrong);
  EXPECT_EQ(found.rounds, (std::vector<std::size_t>{446, 4, 2})) << "brief, whole, neighbours";
  std::vector<std::int64_t> begins;
  for (std::size_t i = 450; i < found.looks.size(); ++i) {
    EXPECT_FALSE(found.looks[i].is_brief);
    begins.push_back(begin_of(found.looks[i]));
  }
  EXPECT_THAT(begins, ::testing::UnorderedElementsAre(792, 808));
  EXPECT_EQ(found.result.verdict, Verdict::unsure);
  EXPECT_DOUBLE_EQ(found.result.log_odds, 7.5 - 5);
  EXPECT_DOUBLE_EQ(found.result.windows.front().log_odds, 7.5 - 5);
  EXPECT_EQ(found.result.windows.size(), 4U) << "neighbours are no evidence";
  EXPECT_EQ(found.result.tokens, 3600 + 4 * 400 + 2 * 80) << "what both show is read once";
  // Without them, it is.
  const Searched alone = look_through(pages, {.asks_neighbours = false}, wrong);
  EXPECT_EQ(alone.rounds, (std::vector<std::size_t>{446, 4}));
  EXPECT_EQ(alone.result.verdict, Verdict::yes);
  EXPECT_DOUBLE_EQ(alone.result.log_odds, 7.5);
}

TEST(SearchNeighboursTest, TheSurerNeighbourCounts) {
  const std::vector<SearchedPage> pages = an_hour();
  // What is seen a second before the window's end is in the later neighbour alone, and in its middle.
  const auto found = [&](double before, double behind) {
    return look_through(pages, {},
                        [&](const Look& look) {
                          switch (begin_of(look)) {
                            case 800:
                              return 6.0;
                            case 792:
                              return before;
                            case 808:
                              return behind;
                            default:
                              return -5.0;
                          }
                        })
        .result;
  };
  EXPECT_DOUBLE_EQ(found(-9, 5).log_odds, 6) << "a neighbour adds nothing";
  EXPECT_DOUBLE_EQ(found(5, -9).log_odds, 6);
  EXPECT_DOUBLE_EQ(found(0, -9).log_odds, 6) << "that is no No";
  EXPECT_DOUBLE_EQ(found(-9, -1).log_odds, 5);
  EXPECT_EQ(found(-9, -1).verdict, Verdict::yes);
  EXPECT_EQ(found(-4, -9).verdict, Verdict::unsure);
  EXPECT_EQ(found(-7, -9).verdict, Verdict::no);
}

TEST(SearchNeighboursTest, TheNextBestIsTheAnswersWhereTheBestIsNotBelieved) {
  const std::vector<SearchedPage> pages = an_hour();
  const Happens event{2000, 2003};
  const Searched found = look_through(pages, {.finds_moment = true}, [&](const Look& look) {
    return begin_of(look) == 800 && look.wall.to - look.wall.from > 30 * kSecond
               ? 8.5
               : event.log_odds(look, pages);
  });
  EXPECT_EQ(found.result.verdict, Verdict::yes);
  EXPECT_LE(found.result.windows.front().wall.from, kNoon + 2000 * kSecond);
  EXPECT_GE(found.result.windows.front().wall.to, kNoon + 2003 * kSecond);
  EXPECT_EQ(found.result.moments, std::vector<std::int64_t>{kNoon + 2000 * kSecond})
      << "no moment of what is not believed";
  for (std::size_t i = 1; i < found.result.windows.size(); ++i)
    EXPECT_LE(found.result.windows[i].log_odds, found.result.windows[i - 1].log_odds);
}

TEST(SearchNeighboursTest, WhatLiesApartIsNone) {
  // Two stretches of 64 s, with an hour between them of which nothing is there. Windows begin every 8 s,
  // those at the end of the first one are shorter.
  std::vector<SearchedPage> pages = an_hour(4000);
  pages.erase(pages.begin() + 8, pages.end() - 8);
  std::vector<std::int64_t> begins;
  const auto asked_for = [&](std::int64_t begin) {
    const Searched found = look_through(pages, {}, SaysOnly{begin, 7.5});
    begins.clear();
    for (std::size_t i = found.rounds.at(0) + found.rounds.at(1); i < found.looks.size(); ++i)
      begins.push_back(begin_of(found.looks[i]));
    return found.result.verdict;
  };
  EXPECT_EQ(asked_for(0), Verdict::yes) << "nobody else shows its first 8 s";
  EXPECT_THAT(begins, ::testing::ElementsAre(8));
  EXPECT_EQ(asked_for(24), Verdict::unsure);
  EXPECT_THAT(begins, ::testing::UnorderedElementsAre(16, 32));
  EXPECT_EQ(asked_for(56), Verdict::unsure) << "all that it shows, the one before shows, too";
  EXPECT_THAT(begins, ::testing::ElementsAre(48));
  EXPECT_EQ(asked_for(3936), Verdict::yes) << "nobody else shows the first 8 s after the gap";
  EXPECT_THAT(begins, ::testing::ElementsAre(3944));
  // One window has none: its word stands.
  const Searched one = look_through(an_hour(40), {}, [](const Look&) { return 8.0; });
  EXPECT_EQ(one.rounds, (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(one.result.verdict, Verdict::yes);
}

TEST(SearchNeighboursTest, ALostNeighbourSaysNothing) {
  const std::vector<SearchedPage> pages = an_hour();
  const auto found = [&](std::set<std::int64_t> lost) {
    std::size_t looks = 0;
    return look_through(pages, {}, [&](const Look& look) -> std::optional<double> {
      if (++looks > 450 && lost.contains(begin_of(look))) return std::nullopt;
      return SaysOnly{800, 7.5}(look);
    });
  };
  EXPECT_DOUBLE_EQ(found({792}).result.log_odds, 7.5) << "its first 8 s nobody else has seen";
  EXPECT_EQ(found({792}).result.failed, 1U);
  EXPECT_EQ(found({792, 808}).result.verdict, Verdict::yes) << "nobody contradicts it";
  // Who was lost by what stands out is not asked once more.
  const Searched brief = look_through(pages, {}, [](const Look& look) -> std::optional<double> {
    if (begin_of(look) == 808) return std::nullopt;
    return SaysOnly{800, 7.5}(look);
  });
  EXPECT_EQ(brief.rounds, (std::vector<std::size_t>{446, 4, 1}));
  EXPECT_EQ(brief.result.failed, 1U);
}

TEST(SearchNeighboursTest, OfAllWindowsNoneIsAskedTwice) {
  const std::vector<SearchedPage> pages = an_hour();
  const Searched found = look_through(pages, {.method = Method::exhaustive}, SaysOnly{800, 7.5});
  EXPECT_EQ(found.rounds, std::vector<std::size_t>{446});
  EXPECT_EQ(found.result.verdict, Verdict::unsure) << "it is known what its neighbours say";
  EXPECT_EQ(found.result.tokens, found.result.all_tokens);
  EXPECT_EQ(found.result.windows.size(), 446U);
  // Nor of those that share a neighbour.
  const Searched shared = look_through(pages, {.apart = 16 * kSecond}, [](const Look& look) {
    return begin_of(look) == 800 || begin_of(look) == 816 ? 7.0 : -2.0;
  });
  EXPECT_EQ(shared.rounds.at(2), 3U) << "792, 808 and 824";
  EXPECT_EQ(shared.result.verdict, Verdict::yes);
}

// What happens for a second or longer is in the windows a step before or behind, if these show it all.
TEST(SearchNeighboursTest, WhatHappenedIsBelieved) {
  // With a gap in the middle; at the edges, and anywhere.
  std::vector<SearchedPage> pages = an_hour();
  pages.erase(pages.begin() + 200, pages.begin() + 220);
  std::vector<double> begins;
  for (const double edge : {0, 1588, 1760, 3588})
    for (int second = 0; second < 12; ++second) begins.push_back(edge + second);
  std::mt19937 random(20261129);
  for (int round = 0; round < 200; ++round) begins.push_back(static_cast<double>(random() % 1590));
  for (const double from : begins) {
    const Happens event{from, from + 1 + static_cast<double>(random() % 9)};
    const auto odds = [&](const Look& look) { return event.log_odds(look, pages); };
    const Searched with = look_through(pages, {.finds_moment = true}, odds);
    const Searched without = look_through(pages, {.asks_neighbours = false, .finds_moment = true}, odds);
    ASSERT_EQ(with.result.verdict, Verdict::yes);
    ASSERT_EQ(with.result.log_odds, without.result.log_odds) << from;
    ASSERT_EQ(with.result.moments, without.result.moments) << from;
  }
}

TEST(SearchNeighboursTest, OnlyWindowsHaveThem) {
  const std::vector<SearchedPage> pages = an_hour();
  for (const Method method : {Method::compose, Method::clusters, Method::rekv}) {
    const Searched with = look_through(pages, {.method = method}, [](const Look&) { return 8.0; });
    const Searched without =
        look_through(pages, {.method = method, .asks_neighbours = false}, [](const Look&) { return 8.0; });
    EXPECT_EQ(with.rounds, without.rounds);
    EXPECT_EQ(with.result.verdict, Verdict::yes);
  }
  // "No" has no need of them.
  EXPECT_EQ(look_through(pages, {}, [](const Look&) { return 2.9; }).rounds,
            (std::vector<std::size_t>{446, 4}));
}

}  // namespace
}  // namespace vigil::memory
