// Questions whose windows wait, whose askers go, whose pages are erased; and pages of a strange past.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/question_desk.h"
#include "tests/engine/memory/asked_memory.h"

namespace vigil::memory {
namespace {

using kv::Form;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::after_noon;
using testing::eight_seconds;
using testing::kNoon;
using testing::kSecond;
using Verdict = Search::Verdict;
using Window = QuestionDesk::Window;

struct QuestionWaysTest : testing::AskedMemory {
  /// Nothing has come of anything.
  void expect_silence() {
    hear();
    EXPECT_TRUE(to_read.empty());
    EXPECT_TRUE(to_ask.empty());
    EXPECT_TRUE(heard.forgotten.empty());
    EXPECT_TRUE(heard.progress.empty());
    EXPECT_TRUE(heard.answered.empty());
    EXPECT_TRUE(heard.erased.empty());
  }
};

TEST_F(QuestionWaysTest, WhatFindsNoRoomIsAskedAgainWhenItIsTime) {
  begin();
  see(0, 40);
  ask(1, "Did a car stop?", after_noon(0, 40));
  hear();
  ASSERT_EQ(to_ask.size(), 1U);
  const std::uint64_t id = to_ask.front().id;
  to_ask.clear();
  for (int time = 0; time < 3; ++time) {
    desk->failed(id, /*is_busy=*/true);
    desk->tick();
    desk->failed(id, /*is_busy=*/true);
    clock.time += milliseconds(249);
    desk->tick();
    expect_silence();
    EXPECT_EQ(desk->open(), 1U);
    clock.time += milliseconds(1);
    desk->tick();
    desk->tick();
    hear();
    ASSERT_EQ(to_ask.size(), 1U) << "once";
    EXPECT_EQ(to_ask.front().id, id);
    EXPECT_EQ(shown(to_ask.front(), 0, 40), 40);
    to_ask.clear();
  }
  clock.time += milliseconds(500);
  desk->recalled(id, said(6).answer);
  const PastAnswer found = [&] {
    device = [](const Window&) { return said(6); };
    return answer();
  }();
  EXPECT_EQ(found.found.verdict, Verdict::yes);
  EXPECT_EQ(found.found.failed, 0U);
  EXPECT_EQ(found.host_bytes, 5 * kPage) << "what it waits with it does not take again";
  EXPECT_EQ(found.looking, milliseconds(500)) << "nobody computed while it waited";
}

// What waits keeps what it has read.
TEST_F(QuestionWaysTest, WhatWaitsIsNotReadAgain) {
  how.most_held = 0;
  how.brief_at_once = 2;
  begin_on_disk({{Form::int4, hours(24)}});
  see(0, 48);
  int busy = 3;
  device = [&](const Window&) { return busy-- > 0 ? Said{{}, true, false} : said(-6); };
  ask(1, "Did a car stop?", after_noon(0, 48));
  for (int round = 0; round < 10; ++round) {
    settle();
    clock.time += how.again;
    desk->tick();
  }
  EXPECT_EQ(answer().disk_bytes, 6 * kPage + 5 * kPage) << "the last is of the window that is asked whole";
}

TEST_F(QuestionWaysTest, WhoGivesUpHearsNothingMore) {
  begin_on_disk({{Form::int4, hours(24)}});
  see(0, 400);
  how.brief_at_once = 3;
  begin(/*with_store=*/true);
  ask(1, "Did a car stop?", after_noon(0, 400));
  ask(2, "Was it dark?", after_noon(0, 40));
  // Of the first question one window is asked, one waits for room, and one for what is read.
  hear();
  ASSERT_EQ(to_read.size(), 4U);
  const auto late = std::move(to_read[2]), other = std::move(to_read[3]);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    desk->read(to_read[i].id, values_of(to_read[i]));
  to_read.clear();
  hear();
  ASSERT_EQ(to_ask.size(), 2U);
  const std::uint64_t asked_id = to_ask[0].id, busy_id = to_ask[1].id;
  to_ask.clear();
  desk->failed(busy_id, /*is_busy=*/true);
  desk->give_up(1);
  hear();
  EXPECT_EQ(heard.forgotten, std::vector{asked_id}) << "those that somebody computes";
  heard = {};
  EXPECT_EQ(desk->open(), 1U);
  EXPECT_EQ(*held, 0U);
  desk->give_up(1);
  clock.time += how.again;
  desk->tick();
  desk->read(late.id, values_of(late));
  EXPECT_EQ(*held, 0U) << "nobody keeps it";
  desk->recalled(asked_id, said(6).answer);
  desk->recalled(busy_id, said(6).answer);
  desk->failed(asked_id, /*is_busy=*/true);
  desk->failed(busy_id, /*is_busy=*/false);
  desk->read(late.id, {});
  expect_silence();
  // The other question goes on.
  desk->read(other.id, values_of(other));
  settle();
  ASSERT_EQ(heard.answered.size(), 1U);
  EXPECT_EQ(heard.answered[0].first, 2U);
}

TEST_F(QuestionWaysTest, NoOnesNamesAreIgnored) {
  begin();
  desk->read(17, {});
  desk->recalled(17, said(1).answer);
  desk->failed(17, false);
  desk->failed(17, true);
  desk->give_up(17);
  desk->tick();
  expect_silence();
}

TEST_F(QuestionWaysTest, AnErasureEndsWhatItMeets) {
  begin();
  see(0, 400);
  see(0, 400, kOther);
  ask(1, "Did a car stop?", after_noon(0, 100));
  ask(2, "Did a car stop?", after_noon(200, 400));
  ask(3, "Did a car stop?", after_noon(0, 100), Method::windows, kOther);
  hear();
  std::vector<std::uint64_t> first;
  for (const Window& window : to_ask)
    if (first.size() < 8) first.push_back(window.id);
  remembered->erase(kGate, after_noon(50, 150), after_noon(50, 150).to);
  desk->erased(kGate, after_noon(50, 150));
  hear();
  EXPECT_EQ(heard.erased, std::vector<std::uint64_t>{1});
  EXPECT_EQ(heard.forgotten, first);
  EXPECT_EQ(desk->open(), 2U);
  settle();
  ASSERT_EQ(heard.answered.size(), 2U);
  for (const auto& [ticket, found] : heard.answered) {
    EXPECT_NE(ticket, 1U);
    EXPECT_EQ(found.coverage.share, 1);
  }
  // What is asked afterwards knows of it.
  heard = {};
  asked.clear();
  ask(4, "Did a car stop?", after_noon(0, 100));
  const PastAnswer found = answer();
  EXPECT_NEAR(found.coverage.share, 0.48, 1e-9) << "whole pages go";
  EXPECT_EQ(found.coverage.gaps, (std::vector<KnownGap>{{after_noon(48, 100), Gap::erased}}));
  for (const Window& window : asked) EXPECT_EQ(shown(window, 48, 400), 0);
}

TEST_F(QuestionWaysTest, PagesOfTwoRunsMoveTogether) {
  begin();
  see(0, 40);
  // The camera came back after ten seconds, as another stream, whose places count from 0 again.
  for (int second = 0; second < 40; second += 8) take(eight_seconds(50 + second, second, 8));
  device = [](const Window& window) {
    Said said = happens(window, 52, 58);
    // Of the window's own seconds: 16 of the first run, and 4 of the second.
    said.answer.text = "At second 18 something stopped, at second 2 nothing had.";
    return said;
  };
  ask(1, "What stopped?", after_noon(0, 90));
  const PastAnswer found = answer();
  std::size_t alone = 0, together = 0;
  for (const Window& window : asked) {
    bool is_mixed = false;
    for (const RecalledPage& page : window.what.pages)
      is_mixed = is_mixed || page.info.stream != window.what.pages.front().info.stream;
    EXPECT_EQ(window.what.moves_together, is_mixed);
    ++(is_mixed ? together : alone);
  }
  EXPECT_GT(alone, 0U);
  EXPECT_GT(together, 0U);
  // A window from 24 on shows 16 seconds of the first run, then the second one.
  EXPECT_EQ(best(found).first, 24);
  EXPECT_EQ(found.text, "At 2024-10-04T12:00:52Z something stopped, at 2024-10-04T12:00:26Z nothing had.");
  EXPECT_EQ(found.coverage.gaps, (std::vector<KnownGap>{{after_noon(40, 50), Gap::down}}));
}

// All of it in one window, by its keys, and in words where a time is wanted.
TEST_F(QuestionWaysTest, ByClustersAllThatIsRememberedIsOneWindow) {
  begin_on_disk({{Form::int4, hours(24)}, {Form::embeddings, hours(24)}});
  see(0, 200);
  device = [](const Window& window) {
    auto said = happens(window, 56, 60);
    if (window.max_tokens > 1) said.answer.text = "At second 57 something stopped.";
    return said;
  };
  ask(1, "When did a car stop?", after_noon(0, 200), Method::clusters);
  const PastAnswer found = answer();
  ASSERT_EQ(asked.size(), 2U) << "a look, and words";
  for (const Window& window : asked) {
    EXPECT_TRUE(window.what.by_clusters);
    EXPECT_EQ(window.what.rekv_share, 0);
    EXPECT_EQ(shown(window, 0, 200), 200);
    EXPECT_EQ(forms_of(window), std::vector<Form>{Form::int4}) << "embeddings are no keys";
  }
  EXPECT_EQ(asked[0].max_tokens, 1);
  EXPECT_EQ(asked[0].text, "Did a car stop?");
  EXPECT_EQ(asked[1].max_tokens, 64);
  EXPECT_EQ(asked[1].text, "When did a car stop?");
  EXPECT_EQ(found.found.verdict, Verdict::yes);
  EXPECT_FALSE(found.found.moment);
  EXPECT_EQ(found.text, "At 2024-10-04T12:00:57Z something stopped.");
  EXPECT_EQ(best(found).first, 0);
  // Of a question for "Yes" or "No", no words; of a "No", none either.
  asked.clear();
  ask(2, "Did a car stop?", after_noon(0, 200), Method::clusters);
  EXPECT_EQ(answer().text, "");
  ask(3, "When did a car stop?", after_noon(80, 200), Method::clusters);
  EXPECT_EQ(answer().found.verdict, Verdict::no);
  EXPECT_EQ(asked.size(), 2U);
  // By ReKV the same stretch, of which so much is seen, and its words as well.
  asked.clear();
  see(200, 1000);
  ask(5, "When did a car stop?", after_noon(0, 1000), Method::rekv);
  EXPECT_EQ(answer().text, "At 2024-10-04T12:00:57Z something stopped.");
  ASSERT_EQ(asked.size(), 2U);
  for (const Window& window : asked) {
    EXPECT_TRUE(window.what.by_clusters);
    EXPECT_GT(window.what.rekv_share, 0);
    EXPECT_LE(window.what.rekv_share, 1);
    EXPECT_EQ(window.what.rekv_share, asked[0].what.rekv_share);
  }
  // The other ways are never by clusters.
  asked.clear();
  ask(4, "Did a car stop?", after_noon(0, 200));
  answer();
  ASSERT_FALSE(asked.empty());
  for (const Window& window : asked) EXPECT_FALSE(window.what.by_clusters);
}

TEST_F(QuestionWaysTest, ByClustersWhatHasNoKeysIsLeftOutAndTold) {
  begin_on_disk({{Form::int4, hours(24)}, {Form::embeddings, hours(24)}});
  see(0, 200);
  device = [](const Window& window) { return happens(window, 56, 60); };
  std::set<std::uint64_t> pages;
  // The keys of one page cannot be read: there are embeddings of it, which are no keys.
  std::optional<std::uint64_t> bad;
  damages = [&](const history::ValueName& name) {
    if (!bad) bad = name.page;
    return name.page == *bad ? history::Missing::damaged : history::Missing::no;
  };
  ask(1, "Did a car stop?", after_noon(0, 200), Method::clusters);
  const PastAnswer found = answer();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(shown(asked[0], 0, 200), 192);
  EXPECT_EQ(found.found.verdict, Verdict::yes);
  EXPECT_EQ(found.found.failed, 0U);
  ASSERT_EQ(found.coverage.gaps.size(), 1U);
  EXPECT_EQ(found.coverage.gaps[0].why, Gap::keyless);
  EXPECT_EQ(found.coverage.share, 192.0 / 200);
}

// What was seen first stays, where a clock that was set back says that two were at once.
TEST_F(QuestionWaysTest, OfWhatOverlapsOneIsShown) {
  begin();
  see(0, 40);
  for (int i = 0; i < 3; ++i) take(eight_seconds(20 + 8 * i, 40 + 8 * i));
  ask(1, "Did a car stop?", after_noon(0, 80), Method::exhaustive);
  const PastAnswer found = answer();
  EXPECT_EQ(found.coverage.share, 44.0 / 80);
  ASSERT_FALSE(asked.empty());
  for (const Window& window : asked) {
    std::int64_t last = 0;
    for (const RecalledPage& page : window.what.pages)
      for (std::size_t i = page.first; i < page.last; ++i) {
        EXPECT_GE(page.info.patches[i].wall.from, last - kSecond);
        last = page.info.patches[i].wall.to;
      }
    EXPECT_LE(shown(window, 0, 80), 40);
  }
  EXPECT_EQ(shown(asked.front(), 0, 40), 40);
}

// A clock was set back in the middle of a stream: what is later by the clock has lower places.
TEST_F(QuestionWaysTest, WhatAClockPutBeforeItsStreamMovesTogether) {
  begin();
  for (int second = 0; second < 40; second += 8) take(eight_seconds(second, second));
  for (int second = 0; second < 40; second += 8) take(eight_seconds(second - 40, 40 + second));
  ask(1, "Did a car stop?", after_noon(-40, 40), Method::exhaustive);
  EXPECT_EQ(answer().coverage.share, 1);
  std::size_t mixed = 0;
  for (const Window& window : asked) {
    std::int64_t place = -1;
    bool ascends = true;
    for (const RecalledPage& page : window.what.pages) {
      ascends = ascends && page.info.patches[page.first].place > place;
      place = page.info.patches[page.last - 1].place;
    }
    EXPECT_EQ(window.what.moves_together, !ascends) << "a desk takes positions that ascend";
    mixed += ascends ? 0 : 1;
  }
  EXPECT_GT(mixed, 0U);
}

}  // namespace
}  // namespace vigil::memory
