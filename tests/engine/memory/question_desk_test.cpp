// Questions about an hour of which all is remembered: what is looked at, and what is found.
#include "engine/memory/question_desk.h"

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/hours.h"
#include "tests/engine/memory/asked_memory.h"

namespace vigil::memory {
namespace {

using kv::Form;
using std::chrono::hours;
using std::chrono::seconds;
using testing::after_noon;
using testing::kNoon;
using testing::kSecond;
using Verdict = Search::Verdict;
using Forms = std::vector<Form>;
using Window = QuestionDesk::Window;

struct QuestionDeskTest : testing::AskedMemory {
  static constexpr std::size_t kPages = 450;
  void an_hour() {
    begin();
    see(0, 3600);
  }
};

TEST_F(QuestionDeskTest, WhatHappenedInOneWindowOfAnHourIsFound) {
  an_hour();
  device = [](const Window& window) { return happens(window, 1000, 1010); };
  ask(1, "Did a car stop?", after_noon(0, 3600));
  EXPECT_EQ(desk->open(), 1U);
  const PastAnswer found = answer();
  EXPECT_EQ(desk->open(), 0U);
  EXPECT_EQ(found.wanted, Wanted::whether);
  EXPECT_EQ(found.about, "Did a car stop?");
  EXPECT_EQ(found.found.verdict, Verdict::yes);
  ASSERT_EQ(found.found.windows.size(), 4U);
  EXPECT_LE(best(found).first, 1000);
  EXPECT_GE(best(found).second, 1010);
  EXPECT_NEAR(found.found.log_odds, 12, 0.1);
  EXPECT_EQ(found.found.moment, std::nullopt);
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(found.coverage.share, 1);
  EXPECT_TRUE(found.coverage.gaps.empty());
  ASSERT_EQ(asked.size(), 446U + 4U + 4U) << "two of the four say Yes, and have two neighbours each";
  for (const Window& window : asked) {
    EXPECT_EQ(window.text, "Did a car stop?");
    EXPECT_EQ(window.max_tokens, 1);
    EXPECT_FALSE(window.what.moves_together);
    EXPECT_TRUE(window.what.questions.empty());
    EXPECT_EQ(forms_of(window), Forms{Form::fp8});
  }
  EXPECT_EQ(found.host_bytes, kPages * kPage) << "each page once";
  EXPECT_EQ(found.disk_bytes, 0U);
}

TEST_F(QuestionDeskTest, ItIsToldHowFarItHasCome) {
  an_hour();
  ask(9, "Did a car stop?", after_noon(0, 3600));
  settle();
  ASSERT_EQ(heard.progress.size(), 450U);
  for (std::size_t i = 0; i < 450; ++i) {
    const QuestionDesk::Progress& each = heard.progress[i];
    EXPECT_EQ(each.ticket, 9U);
    EXPECT_EQ(each.is_brief, i < 446);
    EXPECT_EQ(each.done, i < 446 ? i + 1 : i - 445);
    EXPECT_EQ(each.of, i < 446 ? 446U : 4U);
  }
}

TEST_F(QuestionDeskTest, NoMoreWindowsAreUnderWayThanItsOptionsSay) {
  an_hour();
  how.brief_at_once = 5;
  how.whole_at_once = 3;
  begin();
  see(0, 400);
  std::size_t brief = 0, whole = 0;
  device = [&](const Window&) {
    std::size_t& most = heard.progress.size() < 46 ? brief : whole;
    most = std::max(most, to_ask.size() + 1);
    return said(1);
  };
  ask(1, "Did a car stop?", after_noon(0, 400));
  settle();
  EXPECT_EQ(heard.answered.at(0).second.found.windows.size(), 4U);
  EXPECT_EQ(brief, 5U);
  EXPECT_EQ(whole, 3U);
}

TEST_F(QuestionDeskTest, WhenFindsThePatch) {
  an_hour();
  device = [](const Window& window) { return happens(window, 1000, 1010); };
  ask(1, "When did a car stop?", after_noon(0, 3600));
  const PastAnswer found = answer();
  EXPECT_EQ(found.wanted, Wanted::when);
  EXPECT_EQ(found.about, "Did a car stop?");
  ASSERT_TRUE(found.found.moment);
  EXPECT_EQ(*found.found.moment, kNoon + 1000 * kSecond);
  EXPECT_EQ(found.found.moments, std::vector<std::int64_t>{*found.found.moment});
  for (const Window& window : asked) EXPECT_EQ(window.text, "Did a car stop?");
  EXPECT_EQ(asked.size(), 446U + 4U + 4U + 2U * 39U)
      << "two windows that show it, cut off after each of their patches";
  EXPECT_EQ(found.text, "");
}

TEST_F(QuestionDeskTest, WhereNothingWasItSaysNoAndBetweenIsUnsure) {
  an_hour();
  const auto verdict = [&](const std::string& question, double odds) {
    device = [odds](const Window&) { return said(odds); };
    ask(1, question, after_noon(0, 400));
    return answer();
  };
  EXPECT_EQ(verdict("Did a car stop?", -2).found.verdict, Verdict::no);
  EXPECT_EQ(verdict("Did a car stop?", 2).found.verdict, Verdict::unsure);
  EXPECT_EQ(verdict("Did a car stop?", 4).found.verdict, Verdict::yes);
  const PastAnswer when = verdict("When did a car stop?", 2);
  EXPECT_EQ(when.found.verdict, Verdict::unsure);
  EXPECT_EQ(when.found.moment, std::nullopt);
  // A model that is as sure as it can be.
  EXPECT_NEAR(verdict("Did a car stop?", 1000).found.log_odds, 20.7, 0.1);
  EXPECT_NEAR(verdict("Did a car stop?", -1000).found.log_odds, -20.7, 0.1);
}

TEST_F(QuestionDeskTest, AboutOverridesTheQuestion) {
  an_hour();
  desk->ask(1, {kGate, after_noon(0, 80), "When did it stop?", "Is there a red car?", Method::windows, 64});
  EXPECT_EQ(answer().about, "Is there a red car?");
  for (const Window& window : asked) EXPECT_EQ(window.text, "Is there a red car?");
}

TEST_F(QuestionDeskTest, WordsAreOfTheBestWindowAndTellTimesOfDay) {
  an_hour();
  device = [](const Window& window) {
    Said said = happens(window, 1000, 1010);
    said.answer.text = window.max_tokens == 1 ? "Yes" : "A red car, at second 2.";
    return said;
  };
  const std::string question = "What stopped at the gate?";
  ask(1, question, after_noon(0, 3600));
  const PastAnswer found = answer();
  EXPECT_EQ(found.wanted, Wanted::words);
  EXPECT_EQ(found.about, "Can this be answered by what the video shows: " + question);
  ASSERT_EQ(asked.size(), 446U + 4U + 4U + 1U);
  EXPECT_EQ(heard.progress.size(), 454U) << "the last look is no part of a round";
  const Window& last = asked.back();
  EXPECT_EQ(last.text, question);
  EXPECT_EQ(last.max_tokens, 64);
  EXPECT_EQ(shown(last, 1000, 1010), 10);
  EXPECT_EQ(shown(last, 0, 3600), 40);
  EXPECT_NEAR(best(found).first, 976, 1e-6);
  EXPECT_EQ(found.text, "A red car, at 2024-10-04T12:16:18Z.");
  // Nobody asks for words about nothing.
  asked.clear();
  device = [](const Window&) { return said(-3, "No"); };
  ask(2, question, after_noon(0, 400));
  EXPECT_EQ(answer().text, "");
  for (const Window& window : asked) EXPECT_EQ(window.max_tokens, 1);
}

TEST_F(QuestionDeskTest, WordsThatFailLeaveTheVerdict) {
  an_hour();
  device = [](const Window& window) {
    return window.max_tokens > 1 ? Said{{}, false, true} : happens(window, 100, 110);
  };
  ask(1, "What stopped at the gate?", after_noon(0, 400));
  const PastAnswer found = answer();
  EXPECT_EQ(found.found.verdict, Verdict::yes);
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(found.found.failed, 0U) << "no window of the search is lost";
}

TEST_F(QuestionDeskTest, ByTheOtherMethods) {
  an_hour();
  device = [](const Window& window) { return happens(window, 1000, 1010); };
  ask(1, "When did a car stop?", after_noon(0, 3600), Method::exhaustive);
  const PastAnswer all = answer();
  EXPECT_EQ(all.found.verdict, Verdict::yes);
  EXPECT_EQ(*all.found.moment, kNoon + 1000 * kSecond);
  EXPECT_GT(asked.size(), 446U) << "all of them whole, and moments";
  EXPECT_LE(asked.size(), 446U + 2 * 48U);
  EXPECT_EQ(all.found.windows.size(), 446U);
  for (const auto& progress : heard.progress) EXPECT_FALSE(progress.is_brief);
  asked.clear();
  ask(2, "When did a car stop?", after_noon(0, 3600), Method::compose);
  const PastAnswer composed = answer();
  EXPECT_EQ(composed.found.verdict, Verdict::yes);
  EXPECT_EQ(composed.found.moment, std::nullopt) << "of a window that was never one";
  ASSERT_EQ(asked.size(), 446U + 1U);
  for (const Window& window : asked)
    EXPECT_EQ(window.what.moves_together, &window == &asked.back()) << "what lies hours apart";
  EXPECT_LE(shown(asked.back(), 0, 3600), 40);
  EXPECT_GE(shown(asked.back(), 1000, 1010), 1) << "the middle of the best window";
}

TEST_F(QuestionDeskTest, OnlyWhatIsAskedForIsLookedAt) {
  an_hour();
  ask(1, "Did a car stop?", after_noon(804, 836));
  const PastAnswer found = answer();
  EXPECT_EQ(found.coverage.share, 1);
  EXPECT_EQ(found.host_bytes, 5 * kPage) << "pages that meet it";
  for (const Window& window : asked) EXPECT_EQ(shown(window, 0, 800) + shown(window, 840, 3600), 0);
}

TEST_F(QuestionDeskTest, OfWhatNobodyRememberedNothingIsSaid) {
  begin();
  clock.of_wall = wall_time(kNoon + 3600 * kSecond);
  ask(1, "Did a car stop?", after_noon(0, 3600));
  EXPECT_EQ(desk->open(), 0U) << "answered at once";
  const PastAnswer found = answer();
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(found.found.windows.empty());
  EXPECT_EQ(found.coverage.share, 0);
  EXPECT_EQ(found.coverage.gaps, (std::vector<KnownGap>{{after_noon(0, 3600), Gap::down}}));
  EXPECT_EQ(found.host_bytes + found.disk_bytes, 0U);
  // A range that ends before it begins, and a camera that nobody knows.
  ask(2, "What happened?", after_noon(10, 0), Method::compose);
  EXPECT_EQ(answer().coverage.share, 0);
  ask(3, "", after_noon(0, 10), Method::exhaustive, {"", ""});
  EXPECT_EQ(answer().coverage.share, 0);
}

TEST_F(QuestionDeskTest, ManyQuestionsAtOnceHaveTheirOwnAnswers) {
  an_hour();
  see(0, 800, kOther, 9);
  const auto is_other = [](const Window& window) { return window.what.pages.front().info.stream == 9; };
  // Something happened at the one gate, and it is never seen at the other.
  device = [&](const Window& window) { return is_other(window) ? said(-6) : happens(window, 1000, 1010); };
  for (std::uint64_t ticket = 1; ticket <= 8; ++ticket) {
    const bool is_about_other = ticket % 2 == 0;
    ask(ticket, is_about_other ? "Was it dark?" : "When did a car stop?", after_noon(0, 1200),
        ticket < 5 ? Method::windows : Method::exhaustive, is_about_other ? kOther : kGate);
  }
  EXPECT_EQ(desk->open(), 8U);
  settle();
  ASSERT_EQ(heard.answered.size(), 8U);
  std::set<std::uint64_t> tickets;
  for (const auto& [ticket, found] : heard.answered) {
    tickets.insert(ticket);
    EXPECT_EQ(found.found.verdict, ticket % 2 == 0 ? Verdict::no : Verdict::yes) << ticket;
    EXPECT_EQ(found.about, ticket % 2 == 0 ? "Was it dark?" : "Did a car stop?") << ticket;
    EXPECT_EQ(found.found.moment.has_value(), ticket % 2 == 1) << ticket;
    EXPECT_NEAR(found.coverage.share, ticket % 2 == 0 ? 2.0 / 3 : 1, 1e-9) << ticket;
  }
  EXPECT_EQ(tickets.size(), 8U);
  for (const Window& window : asked)
    EXPECT_EQ(window.text, is_other(window) ? "Was it dark?" : "Did a car stop?");
}

// Reading and looking may go on at once; each counts as long as any of it is under way.
TEST_F(QuestionDeskTest, TellsWhatTookHowLong) {
  how.brief_at_once = 2;
  begin_on_disk({{Form::int4, hours(24)}});
  see(0, 48);
  ask(1, "Did a car stop?", after_noon(0, 48));
  hear();
  ASSERT_EQ(to_read.size(), 2U) << "the second window has a page that the first one has not";
  clock.time += seconds(3);
  desk->read(to_read[1].id, values_of(to_read[1]));
  clock.time += seconds(4);
  desk->read(to_read[0].id, values_of(to_read[0]));
  to_read.clear();
  hear();
  ASSERT_EQ(to_ask.size(), 2U);
  clock.time += seconds(10);
  for (const Window& window : std::exchange(to_ask, {})) desk->recalled(window.id, said(-6).answer);
  hear();
  EXPECT_EQ(to_ask.size(), 1U) << "whole, of windows that begin apart";
  clock.time += seconds(20);
  const PastAnswer found = answer();
  EXPECT_EQ(found.finding, seconds(0));
  EXPECT_EQ(found.reading, seconds(7));
  EXPECT_EQ(found.looking, seconds(30));
  EXPECT_EQ(found.total, seconds(37));
}

}  // namespace
}  // namespace vigil::memory
