#include "actors/stream/memory_desk.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/stream/window_desk.h"
#include "tests/actors/patches.h"
#include "tests/actors/scripted_mover.h"

namespace vigil::actors {
namespace {

using namespace testing;
using kv::Form;
using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct MemoryDeskTest : ::testing::Test {
  ManualClock clock;
  ScriptedLanguage language;
  ScriptedMover mover{language.passes};
  run::TokenTransfer transfer{kernels::Stream::cpu(1)};
  std::unique_ptr<MemoryDesk> past = std::make_unique<MemoryDesk>(
      MemoryDesk::Parts{language.desk, language.questions, mover, transfer, *language.folder},
      std::uint64_t{1} << 24U, 1);
  std::unique_ptr<WindowDesk> windows = std::make_unique<WindowDesk>(
      language.desk, language.questions, WindowDesk::Options{.recalls = &past->recalls()});
  std::vector<memory::FreshPage> pages;
  std::vector<Recalled> recalled;
  std::vector<std::uint64_t> shown;

  MemoryDeskTest() {
    language.desk.leave_to(past->sink());
    windows->grant(1000);
  }
  ~MemoryDeskTest() override {
    windows.reset();
    past.reset();
    EXPECT_TRUE(is_empty()) << "nothing is left in the cache";
  }
  bool is_empty() const { return language.book.free_pages() == language.book.pages(); }

  void take_news() {
    MemoryDesk::News news = past->take_news();
    for (memory::FreshPage& page : news.pages.pages) pages.push_back(std::move(page));
    for (Recalled& each : news.recalled) recalled.push_back(std::move(each));
    for (const Shown& each : news.shown) shown.push_back(each.ticket);
    EXPECT_THAT(news.pages.lost, IsEmpty());
    EXPECT_FALSE(news.pages.failure);
  }
  void run() {
    // Texts of the past begin when their windows are told.
    while (windows->due()) {
      while (windows->due()) windows->work({clock.now()});
      windows->take_news();
    }
    windows->take_news();
  }
  /// A camera shows these values, a second each, and ends.
  void show(const WatchPtr& watch, const std::vector<float>& values, bool ends = true) {
    windows->join(watch);
    past->watch(watch);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto patch = visual_patch(watch, static_cast<double>(i), values[i]);
      patch->captured.wall += std::chrono::seconds(i + 1);
      windows->push(*patch);
      run();
    }
    if (!ends) return;
    end(watch);
  }
  void end(const WatchPtr& watch) {
    windows->end(watch->name);
    run();
    past->end(watch->name);
  }
  /// All pages as a window, in one of their forms.
  Recall all(const std::string& text, int max_tokens = 1, Form form = Form::bf16) const {
    Recall recall;
    recall.ticket = 5;
    recall.text = text;
    recall.max_tokens = max_tokens;
    for (const memory::FreshPage& page : pages)
      for (const run::MovedTokens& tokens : page.forms)
        if (tokens.form == form)
          recall.what.pages.push_back({page.info,
                                       form,
                                       {{{tokens.bytes.get(), tokens.size}, 0, 0, tokens.bytes}},
                                       0,
                                       page.info.patches.size()});
    return recall;
  }
  std::size_t patches() const {
    std::size_t count = 0;
    for (const memory::FreshPage& page : pages) count += page.info.patches.size();
    return count;
  }
};

TEST_F(MemoryDeskTest, WhatLeavesACameraBecomesPages) {
  past->want({Form::bf16, Form::int4});
  show(remembered_watch(), {10, 20, 30, 40, 50, 60});
  take_news();
  ASSERT_FALSE(pages.empty());
  EXPECT_EQ(patches(), 6U);
  for (const memory::FreshPage& page : pages) {
    EXPECT_EQ(page.camera, (history::CameraId{"north", "gate"}));
    ASSERT_THAT(page.forms, SizeIs(2));
    EXPECT_EQ(page.forms[0].form, Form::bf16);
    EXPECT_EQ(page.forms[1].form, Form::int4);
    EXPECT_EQ(page.info.tokens, page.info.patches.size());
  }
  EXPECT_EQ(pages.front().info.patches.front().wall.to, std::int64_t{1785578401} * 1'000'000'000);
  EXPECT_TRUE(is_empty());
}

TEST_F(MemoryDeskTest, WhatARuleSaidYesOfIsWorthMore) {
  past->want({Form::bf16});
  const auto watch = std::make_shared<WatchSettings>(*remembered_watch());
  watch->rules.resize(2);
  watch->rules[0].threshold = 0.9;
  watch->rules[1].threshold = 0.6;
  // A patch a second; its frames are those of the second before.
  const auto answer = [&](std::int64_t from, std::int64_t to, float first, float second) {
    const auto wall = [&](std::int64_t at) {
      return base::Clock::WallTime(std::chrono::seconds(1785578400 + at));
    };
    WindowAnswers window;
    window.watch = watch;
    window.start_wall = wall(from);
    window.end_wall = wall(to);
    window.answers.resize(2);
    window.answers[0].probability_yes = first;
    window.answers[1].probability_yes = second;
    past->answered(window);
  };
  const auto alerted = [&] {
    std::vector<bool> marks;
    for (const memory::FreshPage& page : pages) marks.push_back(page.is_alerted);
    return marks;
  };
  show(watch, {10, 20}, /*ends=*/false);
  answer(0, 2, 0.89F, 0.59F);
  end(watch);
  take_news();
  EXPECT_THAT(alerted(), ElementsAre(false)) << "neither has reached its own threshold";
  show(watch, {10, 20}, /*ends=*/false);
  answer(0, 2, 0.1F, 0.6F);
  end(watch);
  take_news();
  EXPECT_THAT(alerted(), ElementsAre(false, true));
  show(watch, {10, 20});
  take_news();
  EXPECT_THAT(alerted(), ElementsAre(false, true, false)) << "it has ended since";
  // What was long before is another matter, and what nobody keeps is nothing to note.
  show(watch, {10, 20}, /*ends=*/false);
  answer(-9, -3, 1, 1);
  answer(7, 9, 1, 1);
  end(watch);
  answer(0, 2, 1, 1);
  take_news();
  EXPECT_THAT(alerted(), ElementsAre(false, true, false, false));
}

TEST_F(MemoryDeskTest, NothingIsRememberedBeforeItIsWantedOrOfWhatIsNotKept) {
  show(remembered_watch(), {10, 20, 30});
  take_news();
  EXPECT_THAT(pages, IsEmpty()) << "nobody said in which forms";
  past->want({Form::bf16});
  show(remembered_watch(hours(0)), {10, 20, 30});
  take_news();
  EXPECT_THAT(pages, IsEmpty()) << "it is not kept";
  show(remembered_watch(), {10, 20, 30});
  take_news();
  EXPECT_EQ(patches(), 3U);
}

TEST_F(MemoryDeskTest, WantsMayChangeWhileACameraGoesOn) {
  const WatchPtr watch = remembered_watch();
  show(watch, {10, 20, 30, 40}, /*ends=*/false);
  past->want({Form::fp8});
  end(watch);
  take_news();
  EXPECT_GE(patches(), 1U) << "what left the stream afterwards";
  for (const memory::FreshPage& page : pages) EXPECT_EQ(page.forms.at(0).form, Form::fp8);
  pages.clear();
  past->want({});
  show(watch, {10, 20, 30});
  take_news();
  EXPECT_THAT(pages, IsEmpty());
}

TEST_F(MemoryDeskTest, TellsWhetherAWatchIsNews) {
  EXPECT_TRUE(past->watch(remembered_watch()));
  EXPECT_FALSE(past->watch(remembered_watch()));
  EXPECT_FALSE(past->watch(remembered_watch(hours(24), "north", "gate", 2))) << "of pages it says the same";
  EXPECT_TRUE(past->watch(remembered_watch(hours(25))));
  EXPECT_TRUE(past->watch(remembered_watch(hours(25), "south")));
  EXPECT_TRUE(past->watch(remembered_watch(hours(25), "south", "yard")));
  WatchSettings seldom = *remembered_watch(hours(25), "south", "yard");
  seldom.window.stride *= 2;
  EXPECT_TRUE(past->watch(std::make_shared<WatchSettings>(seldom))) << "it says when pages come";
  past->end("gate");
  EXPECT_TRUE(past->watch(remembered_watch(hours(25), "south")));
}

TEST_F(MemoryDeskTest, WhatACamerasWindowsShowIsToldWhenItIsWanted) {
  past->want({Form::bf16});
  const WatchPtr watch = remembered_watch();
  show(watch, {10, 20, 30, 40, 50, 60}, /*ends=*/false);
  take_news();
  EXPECT_THAT(pages, IsEmpty());
  past->show({7, "gate"});
  past->show({8, "nobody"});
  take_news();
  EXPECT_THAT(shown, ElementsAre(7, 8));
  const std::size_t there = patches();
  EXPECT_GT(there, 3U);
  past->show({9, "gate"});
  take_news();
  EXPECT_THAT(shown, ElementsAre(7, 8, 9));
  EXPECT_EQ(patches(), there);
  end(watch);
  take_news();
  EXPECT_EQ(patches(), 6U);
  past->show({10, "gate"});
  take_news();
  EXPECT_EQ(shown.back(), 10U);
}

TEST_F(MemoryDeskTest, AWindowThatIsAskedIsWaitedForAndToldToo) {
  past->want({Form::bf16});
  const WatchPtr watch = remembered_watch();
  show(watch, {10, 20, 30, 40}, /*ends=*/false);
  std::int64_t second = 4;
  // Until one makes a window due.
  while (windows->unanswered() == 0) {
    const auto patch = visual_patch(watch, static_cast<double>(second), 50);
    patch->captured.wall += std::chrono::seconds(++second);
    windows->push(*patch);
  }
  past->show({7, "gate"});
  take_news();
  EXPECT_THAT(shown, IsEmpty());
  const std::size_t before = patches();
  EXPECT_GT(before, 0U);
  run();
  take_news();
  EXPECT_THAT(shown, ElementsAre(7));
  EXPECT_GT(patches(), before) << "those that this window has shown first";
  // A camera that ends has nothing to wait for.
  while (windows->unanswered() == 0) {
    const auto patch = visual_patch(watch, static_cast<double>(second), 60);
    patch->captured.wall += std::chrono::seconds(++second);
    windows->push(*patch);
  }
  past->show({8, "gate"});
  end(watch);
  take_news();
  EXPECT_THAT(shown, ElementsAre(7, 8));
  EXPECT_EQ(patches(), static_cast<std::size_t>(second));
}

TEST_F(MemoryDeskTest, WhatIsNotRememberedIsNotShown) {
  past->want({Form::bf16});
  show(remembered_watch(hours(0)), {10, 20, 30, 40}, /*ends=*/false);
  past->show({7, "gate"});
  take_news();
  EXPECT_THAT(shown, ElementsAre(7));
  EXPECT_THAT(pages, IsEmpty());
  end(remembered_watch());
}

TEST_F(MemoryDeskTest, AnotherTenantsPagesBeginWithHim) {
  past->want({Form::bf16});
  const WatchPtr watch = remembered_watch();
  show(watch, {10, 20, 30, 40, 50, 60}, /*ends=*/false);
  EXPECT_TRUE(past->watch(remembered_watch(hours(24), "south")));
  take_news();
  for (const memory::FreshPage& page : pages) EXPECT_EQ(page.camera.tenant, "north");
  pages.clear();
  end(watch);
  take_news();
  ASSERT_FALSE(pages.empty());
  for (const memory::FreshPage& page : pages) EXPECT_EQ(page.camera.tenant, "south");
}

TEST_F(MemoryDeskTest, ALostDeviceIsToldAndOtherFailuresAreNews) {
  past->want({Form::bf16});
  mover.on_pack = [] { throw run::DeviceLost("unspecified launch failure"); };
  const WatchPtr watch = remembered_watch();
  EXPECT_THROW(
      {
        show(watch, {10, 20, 30});
        past->take_news();
      },
      run::DeviceLost);
  mover.on_pack = [] { throw std::runtime_error("no memory"); };
  windows->end("gate");
  run();
  windows->join(watch);
  past->watch(watch);
  windows->push(*visual_patch(watch, 0, 10));
  run();
  windows->push(*visual_patch(watch, 1, 10));
  run();
  windows->end("gate");
  run();
  const MemoryDesk::News news = past->take_news();
  ASSERT_TRUE(news.pages.failure);
  EXPECT_THROW(std::rethrow_exception(news.pages.failure), std::runtime_error);
  mover.on_pack = {};
}

TEST_F(MemoryDeskTest, AWindowOfThePastSaysWhatItSaid) {
  past->want({Form::bf16, Form::int4});
  show(remembered_watch(), {10, 20, 30, 40, 50, 90});
  take_news();
  for (const bool together : {false, true}) {
    Recall recall = all("Is there a car?", 16, Form::int4);
    recall.what.moves_together = together;
    past->recall(recall);
    run();
    take_news();
    ASSERT_THAT(recalled, SizeIs(1));
    EXPECT_EQ(recalled[0].ticket, 5U);
    EXPECT_EQ(recalled[0].failure, "");
    EXPECT_NEAR(recalled[0].answer.probability_yes, 0.9, 1e-6);
    EXPECT_EQ(recalled[0].answer.text, "Yes, a 90.");
    EXPECT_TRUE(is_empty());
    recalled.clear();
  }
  Recall part = all("Is there a car?");
  part.what.pages.back().last = part.what.pages.back().info.patches.size() - 1;
  past->recall(part);
  run();
  take_news();
  ASSERT_THAT(recalled, SizeIs(1));
  EXPECT_NEAR(recalled[0].answer.probability_yes, 0.5, 1e-6) << "what it sees last";
}

TEST_F(MemoryDeskTest, WhatCannotBeAskedIsRefused) {
  past->want({Form::bf16});
  show(remembered_watch(), {10, 90});
  take_news();
  past->recall(all("Is there <|vision_start|> a car?"));
  past->recall(all("Is there a car?", 0));
  past->recall({.ticket = 6, .what = {}, .text = "Is there a car?", .max_tokens = 1});
  take_news();
  ASSERT_THAT(recalled, SizeIs(3));
  for (const Recalled& each : recalled) {
    EXPECT_NE(each.failure, "");
    EXPECT_FALSE(each.is_busy) << each.failure;
  }
  EXPECT_THAT(recalled[0].failure, HasSubstr("special token"));
  EXPECT_EQ(recalled[2].failure, "nothing is remembered");
  EXPECT_TRUE(is_empty());
}

TEST_F(MemoryDeskTest, WhatFindsNoRoomIsBusyAndWhatIsForgottenIsNotTold) {
  past->want({Form::bf16});
  show(remembered_watch(), {10, 90});
  take_news();
  auto claim = language.book.claim(language.book.free_pages());
  past->recall(all("Is there a car?"));
  take_news();
  ASSERT_THAT(recalled, SizeIs(1));
  EXPECT_TRUE(recalled[0].is_busy);
  EXPECT_THAT(recalled[0].failure, HasSubstr("no room"));
  claim.reset();
  recalled.clear();
  past->recall(all("Is there a car?"));
  EXPECT_FALSE(is_empty());
  past->forget(5);
  past->forget(6);
  EXPECT_TRUE(is_empty());
  run();
  take_news();
  EXPECT_THAT(recalled, IsEmpty());
}

// It is told of in the same news as the answer that was made without it.
TEST_F(MemoryDeskTest, WhatHasLostItsPastIsNotAnsweredWithoutIt) {
  past->want({Form::bf16});
  show(remembered_watch(), std::vector<float>(14, 90));
  take_news();
  ASSERT_EQ(patches(), 14U);
  Recall recall = all("Is there a car?");
  recall.what.by_clusters = true;
  // These passes keep nothing of what lies before windows.
  language.passes.past = nullptr;
  past->recall(recall);
  while (past->recalls().due()) past->recalls().work({clock.now()});
  run();
  take_news();
  ASSERT_THAT(recalled, SizeIs(1));
  EXPECT_EQ(recalled[0].ticket, recall.ticket);
  EXPECT_THAT(recalled[0].failure, HasSubstr("past"));
  EXPECT_EQ(past->recalls().open(), 0U);
}

TEST_F(MemoryDeskTest, LetsGoOfWhatItHasGatheredWhenItGoes) {
  past->want({Form::bf16});
  const WatchPtr watch = remembered_watch();
  show(watch, {10, 20, 30, 40, 50, 60}, /*ends=*/false);
  take_news();
  EXPECT_THAT(pages, IsEmpty()) << "it is gathered";
  mover.on_pack = [] { throw run::DeviceLost("gone"); };
  windows.reset();
  past.reset();
  language.desk.close("gate");
  EXPECT_TRUE(is_empty());
  mover.on_pack = {};
}

}  // namespace
}  // namespace vigil::actors
