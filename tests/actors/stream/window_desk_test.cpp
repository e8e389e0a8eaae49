#include "actors/stream/window_desk.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/patches.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

struct WindowDeskTest : ::testing::Test {
  WindowDeskTest() { desk.grant(1000); }

  /// Works until there is nothing to do.
  void run() {
    while (desk.due()) desk.work({clock.now()});
    take_news();
  }
  void take_news() {
    WindowDesk::News more = desk.take_news();
    for (const auto& [camera, count] : more.credits) credits[camera] += count;
    for (auto& each : more.answered) {
      answered.push_back(each.window);
      tokens.push_back(each.tokens);
    }
    for (auto& each : more.failures) failures.push_back(each);
    overtaken += more.overtaken;
    ended.insert(ended.end(), more.ended.begin(), more.ended.end());
    remarks.insert(remarks.end(), more.remarks.begin(), more.remarks.end());
    budgets.insert(budgets.end(), more.budgets.begin(), more.budgets.end());
  }
  /// Every window that was answered as "camera start-end:frames".
  std::vector<std::string> shown() const {
    std::vector<std::string> result;
    for (const auto& window : answered) {
      std::ostringstream text;
      text << window->watch->name << ' ' << window->start << '-' << window->end << ':' << window->frames;
      result.push_back(text.str());
    }
    return result;
  }
  bool is_empty() const { return language.book.free_pages() == language.book.pages(); }

  ManualClock clock;
  ScriptedLanguage language;
  WindowDesk desk{language.desk, language.questions, {}};
  std::map<std::string, std::uint32_t> credits;
  std::vector<WindowAnswersPtr> answered;
  std::vector<stream::WindowTokens> tokens;
  std::vector<WindowDesk::News::Failure> failures;
  std::size_t overtaken = 0;
  std::vector<std::string> ended;
  std::vector<WindowDesk::News::Remark> remarks;
  std::vector<WindowDesk::News::Budget> budgets;
  WatchPtr live = watched(*camera("live", config::Pace::realtime));
};

TEST_F(WindowDeskTest, AsksEveryRuleAboutEveryWindow) {
  auto settings = camera("gate", config::Pace::realtime);
  settings->rules.push_back(settings->rules[0]);
  settings->rules[1].name = "explained";
  settings->rules[1].explain = true;
  const WatchPtr gate = watched(*settings);
  EXPECT_EQ(desk.join(gate), 6U) << "a window of 4 patches and a stride of 2";
  desk.join(live);
  for (const WatchPtr& each : {gate, live}) {
    desk.push(*visual_patch(each, 0, 30));
    desk.push(*visual_patch(each, 1, 70));
  }
  run();
  EXPECT_THAT(shown(), ElementsAre("gate 0-2:4", "live 0-2:4"));
  ASSERT_EQ(answered.size(), 2U);
  const WindowAnswers& first = *answered[0];
  ASSERT_EQ(first.answers.size(), 2U);
  EXPECT_NEAR(first.answers[0].probability_yes, 0.7F, 1e-5);
  EXPECT_EQ(first.watch, gate);
  EXPECT_EQ(first.end_wall - first.start_wall, 2s);
  EXPECT_EQ(first.captured.steady, visual_patch(gate, 1)->captured.steady);
  ASSERT_TRUE(first.id);
  EXPECT_EQ(first.id->camera, "gate");
  EXPECT_EQ(answered[1]->id, std::nullopt) << "nothing of it will be explained";
  EXPECT_TRUE(language.desk.explain(*first.id, 1));
  language.desk.let_go(*first.id);
  while (desk.due()) desk.work({clock.now()});
  const WindowDesk::News told = desk.take_news();
  ASSERT_EQ(told.told.size(), 1U);
  EXPECT_EQ(told.told[0].answer.text, "Yes, a 70.");
  EXPECT_TRUE(is_empty());
}

TEST_F(WindowDeskTest, ACamerasSettingsSayWhatIsComputedAnewAndMayChange) {
  const auto camera_of = [](config::Refresh refresh, std::uint64_t version) {
    auto settings = camera("gate", config::Pace::realtime);
    settings->stream.pruning.refresh = refresh;
    settings->stream.pruning.refresh_share = 0.5;
    return watched(*settings, version);
  };
  WatchPtr gate = camera_of(config::Refresh::none, 1);
  desk.join(gate);
  double second = 0;
  const auto next_window = [&] {
    for (int i = 0; i < 2; ++i) desk.push(*visual_patch(gate, second++));
    run();
    return tokens.back();
  };
  using Tokens = stream::WindowTokens;
  EXPECT_EQ(next_window(), (Tokens{2, 0, 0}));
  EXPECT_EQ(next_window(), (Tokens{4, 2, 0}));
  EXPECT_EQ(next_window(), (Tokens{4, 2, 0}));
  desk.know(gate = camera_of(config::Refresh::first_k, 2));
  EXPECT_EQ(next_window(), (Tokens{4, 0, 0})) << "another policy begins anew";
  EXPECT_EQ(next_window(), (Tokens{4, 2, 1}));
  desk.know(gate = camera_of(config::Refresh::first_k, 3));
  EXPECT_EQ(next_window(), (Tokens{4, 2, 1})) << "the same one goes on";
  desk.know(gate = camera_of(config::Refresh::all, 4));
  EXPECT_EQ(next_window(), (Tokens{4, 0, 0}));
  EXPECT_EQ(next_window(), (Tokens{4, 0, 0}));
  desk.know(gate = camera_of(config::Refresh::random_k, 5));
  EXPECT_EQ(next_window(), (Tokens{4, 0, 0}));
  EXPECT_EQ(next_window(), (Tokens{4, 2, 1}));
  desk.know(gate = camera_of(config::Refresh::topk, 6));
  EXPECT_EQ(next_window(), (Tokens{4, 0, 0}));
  EXPECT_EQ(next_window(), (Tokens{4, 2, 1, 2}));
  desk.end("gate");
  run();
  EXPECT_THAT(ended, ElementsAre("gate"));
  EXPECT_TRUE(is_empty());
}

// What it is asked about was seen before it was there.
TEST_F(WindowDeskTest, ARuleThatIsAddedSeesTheWindowThatIsThere) {
  for (const config::Refresh refresh : {config::Refresh::all, config::Refresh::none}) {
    const auto settings = camera("gate", config::Pace::realtime);
    settings->stream.pruning.refresh = refresh;
    const WatchPtr before = watched(*settings);
    desk.join(before);
    for (int second = 0; second < 5; ++second) desk.push(*visual_patch(before, second, 90));
    run();
    ASSERT_EQ(answered.back()->answers.size(), 1U);
    settings->rules.push_back(settings->rules[0]);
    settings->rules[1].name = "bag";
    settings->rules[1].prompt = "Is there a bag?";
    const WatchPtr after = watched(*settings, 2);
    desk.know(after);
    desk.push(*visual_patch(after, 5, 90));
    run();
    EXPECT_EQ(shown().back(), "gate 2-6:8") << "of which one patch came after the rule";
    ASSERT_EQ(answered.back()->answers.size(), 2U);
    EXPECT_EQ(answered.back()->answers[1].probability_yes, answered.back()->answers[0].probability_yes);
    EXPECT_EQ(tokens.back().kept, refresh == config::Refresh::none ? 2 : 0) << "its stream goes on";
    desk.end("gate");
    run();
  }
  EXPECT_TRUE(is_empty());
}

/// A camera with a budget of so many tokens, whose patches have eight, windows four patches and strides two.
std::shared_ptr<OwnCamera> with_budget(std::uint64_t tokens) {
  auto settings = camera("gate", config::Pace::realtime);
  settings->stream.pruning.kv_budget = {tokens};
  return settings;
}

TEST_F(WindowDeskTest, WindowsForgetTheirOldestWhereABudgetIsTooSmallAndSaySoOnce) {
  for (const config::Refresh refresh : {config::Refresh::all, config::Refresh::none}) {
    // Of what is kept, a page is for where it begins.
    auto settings = with_budget(refresh == config::Refresh::all ? 16 : 24);
    settings->stream.pruning.refresh = refresh;
    const WatchPtr gate = watched(*settings, 1);
    desk.join(gate);
    for (int i = 0; i < 12; ++i) {
      const WindowDesk::Taken taken = desk.push(*visual_patch(gate, i, 1, 1, 8));
      EXPECT_EQ(taken.advice.share, 1) << "`none` cannot prune";
      run();
    }
    EXPECT_THAT(shown(), ElementsAre("gate 0-2:4", "gate 2-4:4", "gate 4-6:4", "gate 6-8:4", "gate 8-10:4",
                                     "gate 10-12:4"));
    for (const stream::WindowTokens& each : tokens) EXPECT_EQ(each.visual, 16);
    EXPECT_THAT(failures, IsEmpty());
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_EQ(remarks[0].watch, gate);
    EXPECT_TRUE(remarks[0].is_warning);
    EXPECT_THAT(remarks[0].line, HasSubstr("(16 visual tokens): they forget their oldest frames"));
    ASSERT_EQ(budgets.size(), 12U);
    EXPECT_EQ(budgets[0].usage, 0.5);
    EXPECT_EQ(budgets[2].usage, 1.5) << "before it forgets";
    EXPECT_EQ(budgets[3].usage, 1);
    std::int64_t forgotten = 0;
    for (const auto& each : budgets) forgotten += each.forgotten;
    EXPECT_EQ(forgotten, 80) << "all but the last two of twelve patches, each once";

    settings->stream.pruning.kv_budget = {0};
    const WatchPtr rich = watched(*settings, 2);
    desk.know(rich);
    for (int i = 12; i < 16; ++i) {
      desk.push(*visual_patch(rich, i, 1, 1, 8));
      run();
    }
    EXPECT_EQ(shown().back(), "gate 12-16:8") << "as long as it is set to";
    ASSERT_EQ(remarks.size(), 2U);
    EXPECT_EQ(remarks[1].line, "its windows have no budget of keys and values any more");
    ASSERT_EQ(budgets.size(), 13U);
    EXPECT_EQ(budgets[12].usage, std::nullopt);
    desk.end("gate");
    run();
    EXPECT_TRUE(is_empty());
    answered.clear();
    tokens.clear();
    remarks.clear();
    budgets.clear();
  }
}

TEST_F(WindowDeskTest, WhatTheLastWindowForgetsCountsToo) {
  const WatchPtr gate = watched(*with_budget(16), 1);
  desk.join(gate);
  for (int i = 0; i < 3; ++i) desk.push(*visual_patch(gate, i, 1, 1, 8));
  take_news();
  EXPECT_EQ(budgets.size(), 3U);
  desk.end("gate");
  run();
  EXPECT_THAT(shown(), ElementsAre("gate 0-2:4", "gate 1-3:4"));
  ASSERT_EQ(budgets.size(), 4U);
  EXPECT_EQ(budgets[3].forgotten, 8);
  EXPECT_EQ(budgets[3].usage, 1.5);
  EXPECT_THAT(ended, ElementsAre("gate"));
}

TEST_F(WindowDeskTest, ABudgetIsMetByPruningFirstWhereThatCanRank) {
  auto settings = with_budget(24);
  settings->stream.pruning.policy = config::Pruning::scene;
  const WatchPtr gate = watched(*settings, 1);
  desk.join(gate);
  const auto patch = [&](int second, int groups) {
    auto visual = visual_patch(gate, second, 1, 1, groups);
    auto tokens_of = std::make_shared<model::VisualTokens>();
    tokens_of->embeddings = numbers(1, groups);
    tokens_of->width = 1;
    tokens_of->kept = base::GridMask::none(1, 8);
    for (int i = 0; i < groups; ++i) tokens_of->kept.add(i);
    tokens_of->seconds = second;
    tokens_of->duration = 1;
    visual->tokens = tokens_of;
    const double share = desk.push(*visual).advice.share;
    run();
    return share;
  };
  EXPECT_EQ(patch(0, 8), 1);
  EXPECT_EQ(patch(1, 8), 1);
  EXPECT_EQ(patch(2, 8), 0.5) << "two whole ones leave eight for two";
  EXPECT_EQ(patch(3, 4), 0.5);
  EXPECT_EQ(budgets.back().forgotten, 8) << "what came before the bound was too much";
  for (int i = 4; i < 7; ++i) EXPECT_EQ(patch(i, 2), 0.5) << i;
  EXPECT_EQ(budgets.back().forgotten, 0);
  EXPECT_EQ(patch(7, 2), 1) << "a window went by without a call for it";
  ASSERT_EQ(remarks.size(), 3U);
  EXPECT_THAT(remarks[0].line, HasSubstr("at most 50 % of a patch's groups"));
  EXPECT_FALSE(remarks[0].is_warning);
  EXPECT_THAT(remarks[1].line, HasSubstr("forget their oldest"));
  EXPECT_THAT(remarks[2].line, HasSubstr("fit its budget of 24B (24 visual tokens) again"));
}

TEST_F(WindowDeskTest, StreamsThatHaveNoRoomTogetherAreNamedOnce) {
  // A window fits, and what both keep does not.
  ScriptedLanguage small(ScriptedLanguage().pages_of(32, live->rules) + 3);
  WindowDesk tight{small.desk, small.questions, {}};
  tight.grant(1000);
  std::vector<WatchPtr> watches;
  for (const char* name : {"gate", "yard"}) {
    auto settings = camera(name, config::Pace::realtime);
    settings->stream.pruning.refresh = config::Refresh::none;
    watches.push_back(watched(*settings, 1));
    tight.join(watches.back());
  }
  std::vector<std::string> said;
  for (int i = 0; i < 16; ++i)
    for (const WatchPtr& each : watches) {
      tight.push(*visual_patch(each, i, 1, 1, 8));
      while (tight.due()) tight.work({clock.now()});
      for (const auto& remark : tight.take_news().remarks) {
        EXPECT_TRUE(remark.is_warning);
        said.push_back(remark.watch->name + ": " + remark.line);
      }
    }
  ASSERT_EQ(said.size(), 1U);
  const std::string line =
      "with it, streams want to keep 64 tokens between windows, of 2 cameras, and there is room for " +
      std::to_string(small.desk.most_kept()) + " beside texts";
  EXPECT_THAT(said[0], HasSubstr(line));
  EXPECT_LT(small.desk.most_kept(), 64) << "else this would prove nothing";
}

// Whoever asks how late an answer is does not count what the source took to show that the window had ended.
TEST_F(WindowDeskTest, AWindowIsAskedWhenThePatchWasEncodedThatMadeItDue) {
  desk.join(live);
  const auto push = [&](double seconds, base::Duration encoded) {
    auto visual = visual_patch(live, seconds);
    visual->encoded.end = base::Clock::TimePoint(encoded);
    desk.push(*visual);
    while (desk.due()) desk.work({clock.now()});
    std::vector<base::Clock::TimePoint> asked;
    for (const auto& each : desk.take_news().answered) asked.push_back(each.asked);
    return asked;
  };
  EXPECT_THAT(push(0, 1s), IsEmpty());
  EXPECT_THAT(push(0.5, 2s), IsEmpty()) << "the window that ends at 2 may want more";
  EXPECT_THAT(push(2, 9s), ElementsAre(base::Clock::TimePoint(9s)));
}

TEST_F(WindowDeskTest, ANewerWindowOvertakesTheOneThatWaits) {
  desk.join(live);
  for (int i = 0; i < 8; ++i) desk.push(*visual_patch(live, i));
  take_news();
  EXPECT_THAT(credits, ElementsAre(Pair("live", 8U)));
  EXPECT_EQ(overtaken, 3U);
  EXPECT_EQ(desk.unanswered(), 1U);
  run();
  EXPECT_THAT(shown(), ElementsAre("live 4-8:8"));
  EXPECT_EQ(desk.unanswered(), 0U);
}

TEST_F(WindowDeskTest, ACameraThatLosesNothingIsHeldBack) {
  const WatchPtr file = watched(*camera("file", config::Pace::fast));
  desk.join(file);
  for (int i = 0; i < 4; ++i) desk.push(*visual_patch(file, i));
  take_news();
  EXPECT_THAT(credits, ElementsAre(Pair("file", 2U))) << "each second one ends a window";
  EXPECT_EQ(desk.unanswered(), 2U);
  run();
  EXPECT_THAT(shown(), ElementsAre("file 0-2:4", "file 0-4:8")) << "the oldest first";
  EXPECT_THAT(credits, ElementsAre(Pair("file", 4U)));
}

TEST_F(WindowDeskTest, EachCameraHasWindowsOfItsOwn) {
  auto quick_settings = camera("quick");
  quick_settings->stream.window = {3s, 1s};
  auto slow_settings = camera("slow");
  slow_settings->stream.window = {8s, 4s};
  slow_settings->stream.fps = 1;  // patches of 2 s
  const WatchPtr quick = watched(*quick_settings);
  const WatchPtr slow = watched(*slow_settings);
  desk.join(quick);
  desk.join(slow);
  for (int i = 0; i < 8; ++i) {
    desk.push(*visual_patch(quick, i));
    if (i % 2 == 0) desk.push(*visual_patch(slow, i, 1, /*duration=*/2));
    run();
  }
  std::map<std::string, std::vector<std::string>> windows;
  for (const std::string& each : shown()) windows[each.substr(0, 5)].push_back(each.substr(5));
  EXPECT_THAT(windows["quick"],
              ElementsAre(" 0-1:2", " 0-2:4", " 0-3:6", " 1-4:6", " 2-5:6", " 3-6:6", " 4-7:6", " 5-8:6"));
  EXPECT_THAT(windows["slow "], ElementsAre("0-4:4", "0-8:8"));
}

TEST_F(WindowDeskTest, APatchWhoseSettingsNobodyToldIsRefused) {
  const WatchPtr before = watch("a", 1);
  const WatchPtr after = watch("a", 2);
  EXPECT_TRUE(desk.push(*visual_patch(before, 0)).refused) << "it has not joined";
  desk.join(before);
  EXPECT_FALSE(desk.push(*visual_patch(before, 0)).refused);
  EXPECT_TRUE(desk.push(*visual_patch(after, 1)).refused);
  take_news();
  EXPECT_THAT(credits, ElementsAre(Pair("a", 2U))) << "it takes no place";
  desk.know(after);
  EXPECT_FALSE(desk.push(*visual_patch(before, 1)).refused) << "what comes after the settings of the next";
  EXPECT_FALSE(desk.push(*visual_patch(after, 2)).refused);
  EXPECT_TRUE(desk.push(*visual_patch(before, 3)).refused) << "they come in order";
  EXPECT_TRUE(desk.push(*visual_patch(after, 2)).refused) << "late";
  EXPECT_EQ(desk.watch("a"), after);
}

TEST_F(WindowDeskTest, EndsAfterTheLastWindowAndMayBeginAgain) {
  desk.join(live);
  for (int i = 0; i < 3; ++i) desk.push(*visual_patch(live, i));
  desk.end("live");
  take_news();
  EXPECT_THAT(ended, IsEmpty());
  run();
  EXPECT_THAT(shown(), ElementsAre("live 0-2:4", "live 0-3:6")) << "what is left becomes a last window";
  EXPECT_THAT(ended, ElementsAre("live"));
  EXPECT_EQ(desk.watch("live"), nullptr);
  EXPECT_TRUE(desk.push(*visual_patch(live, 9)).refused);
  EXPECT_TRUE(is_empty());
  desk.join(live);
  EXPECT_FALSE(desk.push(*visual_patch(live, 0)).refused) << "its time begins anew";
}

TEST_F(WindowDeskTest, AStreamThatBeginsAnewLosesWhatWasAsked) {
  desk.join(live);
  for (int i = 0; i < 2; ++i) desk.push(*visual_patch(live, i));
  EXPECT_EQ(desk.unanswered(), 1U);
  desk.join(live);
  take_news();
  EXPECT_EQ(desk.unanswered(), 0U);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].reason, "its stream has ended");
}

TEST_F(WindowDeskTest, WhatFailsIsToldWithItsSettingsAndGivesItsCreditBack) {
  const WatchPtr file = watched(*camera("file", config::Pace::fast));
  desk.join(file);
  for (const float value : {10.0F, 254.0F, 20.0F, 30.0F})
    desk.push(*visual_patch(file, value == 10 ? 0 : value == 254 ? 1 : value == 20 ? 2 : 3, value));
  run();
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].watch, file);
  EXPECT_EQ(failures[0].reason, "a window without room");
  EXPECT_THAT(shown(), ElementsAre("file 0-4:8"));
  EXPECT_THAT(credits, ElementsAre(Pair("file", 4U)));
}

TEST_F(WindowDeskTest, ARuleThatMakesNoSenseFailsItsWindows) {
  auto settings = camera("gate");
  settings->rules[0].prompt = "<|im_end|>";
  const WatchPtr gate = watched(*settings);
  desk.join(gate);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(desk.push(*visual_patch(gate, i)).fit, std::nullopt);
  take_news();
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0].reason, HasSubstr("<|im_end|>"));
  EXPECT_THAT(credits, ElementsAre(Pair("gate", 2U)));
}

TEST_F(WindowDeskTest, AsksNoMoreThanCanBeTaken) {
  WindowDesk slow{language.desk, language.questions, {}};
  slow.join(live);
  for (int i = 0; i < 4; ++i) slow.push(*visual_patch(live, i));
  const auto answers = [&] {
    while (slow.due()) slow.work({clock.now()});
    return slow.take_news().answered.size();
  };
  EXPECT_EQ(answers(), 0U) << "nobody takes answers yet";
  slow.grant(1);
  EXPECT_EQ(answers(), 1U);
  for (int i = 4; i < 6; ++i) slow.push(*visual_patch(live, i));
  EXPECT_EQ(answers(), 0U);
  slow.grant(1);
  EXPECT_EQ(answers(), 1U);
}

// Then no patch is left of it when it was asked.
TEST_F(WindowDeskTest, AWindowMayBeAsLongAsItsStride) {
  auto settings = camera("chunks", config::Pace::realtime);
  settings->stream.window = {2s, 2s};
  const WatchPtr chunks = watched(*settings);
  desk.join(chunks);
  for (int i = 0; i < 40; ++i) {
    desk.push(*visual_patch(chunks, i));
    const auto due = desk.due();
    if (i % 2 == 1) {
      EXPECT_EQ(due, visual_patch(chunks, i)->captured.steady + 3s) << "half a stride after the next ends";
    } else {
      EXPECT_EQ(due, visual_patch(chunks, i)->captured.steady + 4s) << "after the rest of its stride";
    }
    run();
  }
  EXPECT_EQ(answered.size(), 20U);
  EXPECT_EQ(answered.back()->frames, 4);
  EXPECT_TRUE(is_empty());
}

TEST_F(WindowDeskTest, TheNextWindowIsComputedAheadAndDueAsIfItWereAsked) {
  desk.join(live);
  desk.push(*visual_patch(live, 0));
  const auto due = desk.due();
  EXPECT_EQ(due, visual_patch(live, 1)->captured.steady + live->window.stride * 3 / 2);
  run();
  EXPECT_THAT(shown(), IsEmpty());
  EXPECT_FALSE(is_empty()) << "what there is of it was computed";
  desk.push(*visual_patch(live, 1));
  EXPECT_EQ(desk.due(), due);
  run();
  EXPECT_THAT(shown(), ElementsAre("live 0-2:4"));
}

TEST_F(WindowDeskTest, KeepsNoMorePatchesThanTheNextWindowShows) {
  desk.join(live);
  for (int i = 0; i < 1000; ++i) {
    desk.push(*visual_patch(live, i));
    run();
    ASSERT_LE(language.desk.stream("live").patches().count(), 4);
  }
  EXPECT_TRUE(is_empty());
}

}  // namespace
}  // namespace vigil::actors
