// Which forms of pages a question takes, from which tier, and what it does without them.
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/question_desk.h"
#include "tests/engine/memory/asked_memory.h"

namespace vigil::memory {
namespace {

using history::Missing;
using history::ValueName;
using kv::Form;
using std::chrono::hours;
using testing::after_noon;
using testing::kNoon;
using Verdict = Search::Verdict;
using Forms = std::vector<Form>;
using Window = QuestionDesk::Window;

struct QuestionFormsTest : testing::AskedMemory {
  /// Of the windows that were asked for yes or no, and of those for words.
  Forms of_looks, of_words;
  PastAnswer ask_what(const history::WallRange& wall) {
    device = [this](const Window& window) {
      Forms& forms = window.max_tokens > 1 ? of_words : of_looks;
      for (const Form form : forms_of(window))
        if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
      return said(6, "a car");
    };
    asked.clear();
    of_looks.clear();
    of_words.clear();
    ask(1, "What stopped?", wall);
    return answer();
  }
  static bool is(const ValueName& name, std::uint64_t page, Form form) {
    return name.page == Memory::number_on_disk(page, form);
  }
};

TEST_F(QuestionFormsTest, TheHostsComeBeforeTheDisks) {
  options.host = {{Form::fp8, hours(2)}, {Form::int4, hours(2)}};
  options.disk = {{Form::bf16, hours(24)}, {Form::int4, hours(24)}};
  begin(/*with_store=*/true);
  see(0, 160);
  const PastAnswer found = ask_what(after_noon(0, 160));
  EXPECT_EQ(of_looks, Forms{Form::fp8}) << "the finest of those that are there at once";
  EXPECT_EQ(of_words, Forms{Form::fp8});
  EXPECT_EQ(found.host_bytes, 20 * kPage);
  EXPECT_EQ(found.disk_bytes, 0U);
  EXPECT_EQ(found.text, "a car");
  // The next process has what lies on the disk alone.
  begin(/*with_store=*/true);
  const PastAnswer later = ask_what(after_noon(0, 160));
  EXPECT_EQ(of_looks, Forms{Form::bf16});
  EXPECT_EQ(later.host_bytes, 0U);
  EXPECT_EQ(later.disk_bytes, 20 * kPage) << "each page once";
  EXPECT_EQ(later.text, "a car");
  EXPECT_EQ(*held, 0U) << "nothing is held for a question that is over";
}

TEST_F(QuestionFormsTest, EmbeddingsAreForWords) {
  begin_on_disk({{Form::int4, hours(24)}, {Form::embeddings, hours(24)}});
  see(0, 160);
  const PastAnswer found = ask_what(after_noon(0, 160));
  EXPECT_EQ(of_looks, Forms{Form::int4});
  EXPECT_EQ(of_words, Forms{Form::embeddings});
  EXPECT_EQ(found.disk_bytes, 25 * kPage) << "20 pages of keys, and 5 of embeddings";
  // Where nothing else is kept, looks take them, too.
  store = history::make_memory_history_store();
  begin_on_disk({{Form::embeddings, hours(24)}});
  see(0, 80);
  EXPECT_EQ(ask_what(after_noon(0, 80)).found.verdict, Verdict::yes);
  EXPECT_EQ(of_looks, Forms{Form::embeddings});
  // On the host they are found as well.
  options.host = {{Form::embeddings, hours(2)}};
  begin();
  see(0, 80);
  const PastAnswer on_host = ask_what(after_noon(0, 80));
  EXPECT_EQ(of_words, Forms{Form::embeddings});
  EXPECT_EQ(on_host.host_bytes, 10 * kPage);
}

TEST_F(QuestionFormsTest, PagesOfAWindowMayHaveOtherForms) {
  options.host = {{Form::fp8, hours(2)}};
  options.disk = {{Form::int4, hours(24)}};
  begin(/*with_store=*/true);
  see(0, 24);
  begin(/*with_store=*/true);
  see(24, 40);
  const PastAnswer found = ask_what(after_noon(0, 40));
  EXPECT_EQ(of_looks, (Forms{Form::int4, Form::fp8}));
  EXPECT_EQ(found.disk_bytes, 3 * kPage);
  EXPECT_EQ(found.host_bytes, 2 * kPage);
  EXPECT_EQ(found.coverage.share, 1);
}

TEST_F(QuestionFormsTest, OfADamagedFormAnotherOneIsTaken) {
  begin_on_disk({{Form::fp8, hours(24)}, {Form::int4, hours(24)}, {Form::embeddings, hours(24)}});
  see(0, 80);
  for (const Missing why : {Missing::damaged, Missing::absent}) {
    // Of the third page one value of two; of the fourth both forms of keys, one after the other.
    damages = [&](const ValueName& name) {
      const bool is_damaged = (is(name, 3, Form::fp8) && name.layers.first == 1) || is(name, 4, Form::fp8) ||
                              is(name, 4, Form::int4);
      return is_damaged ? why : Missing::no;
    };
    const PastAnswer found = ask_what(after_noon(0, 80));
    EXPECT_EQ(found.found.verdict, Verdict::yes);
    EXPECT_EQ(found.found.failed, 0U);
    EXPECT_EQ(found.coverage.share, 1);
    EXPECT_TRUE(found.coverage.gaps.empty());
    std::set<std::pair<std::uint64_t, Form>> taken;
    for (const Window& window : asked)
      if (window.max_tokens == 1)
        for (const RecalledPage& page : window.what.pages) taken.emplace(page.info.number, page.form);
    EXPECT_EQ(taken, (std::set<std::pair<std::uint64_t, Form>>{{1, Form::fp8},
                                                               {2, Form::fp8},
                                                               {3, Form::int4},
                                                               {4, Form::embeddings},
                                                               {5, Form::fp8},
                                                               {6, Form::fp8},
                                                               {7, Form::fp8},
                                                               {8, Form::fp8},
                                                               {9, Form::fp8},
                                                               {10, Form::fp8}}));
  }
}

TEST_F(QuestionFormsTest, WindowsOfWhatCannotBeReadAreGivenUpAndTheCoverageTells) {
  begin_on_disk({{Form::int4, hours(24)}, {Form::embeddings, hours(24)}});
  see(0, 400);
  damages = [](const ValueName& name) {
    return is(name, 10, Form::int4) || is(name, 10, Form::embeddings) ? Missing::damaged : Missing::no;
  };
  const PastAnswer found = ask_what(after_noon(0, 400));
  EXPECT_EQ(found.found.verdict, Verdict::yes);
  EXPECT_EQ(found.found.failed, 5U) << "windows of 40 s, one each 8 s, have a page of 8 s in five of them";
  EXPECT_NEAR(found.coverage.share, 392.0 / 400, 1e-9);
  EXPECT_EQ(found.coverage.gaps, (std::vector<KnownGap>{{after_noon(72, 80), Gap::damaged}}));
  for (const Window& window : asked) EXPECT_EQ(shown(window, 72, 80), 0);
  EXPECT_EQ(heard.forgotten.size(), 0U);
  // The whole of it: nothing can be said.
  damages = [](const ValueName&) { return Missing::damaged; };
  asked.clear();
  heard = {};
  ask(2, "When did it stop?", after_noon(0, 400));
  const PastAnswer none = answer();
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(none.found.windows.empty());
  EXPECT_EQ(none.found.failed, 46U);
  // Of the last windows the first page was known to be damaged: nobody read the rest.
  EXPECT_EQ(none.coverage.gaps, (std::vector<KnownGap>{{after_noon(0, 368), Gap::damaged}}));
}

TEST_F(QuestionFormsTest, WhatTheDeviceDoesNotAnswerIsLostAndTheRestGoesOn) {
  begin();
  see(0, 400);
  device = [](const Window& window) {
    return shown(window, 72, 80) > 0 ? Said{{}, false, true} : happens(window, 200, 210);
  };
  ask(1, "Did a car stop?", after_noon(0, 400));
  const PastAnswer found = answer();
  EXPECT_EQ(found.found.verdict, Verdict::yes);
  EXPECT_EQ(found.found.failed, 5U);
  EXPECT_EQ(found.coverage.share, 1) << "it is remembered";
}

// A page of which nothing was kept is a byte on the disk, and none for the device.
TEST_F(QuestionFormsTest, APageWithoutTokensHasNoBytes) {
  begin_on_disk({{Form::int4, hours(24)}});
  see(0, 8);
  history::PageInfo info = testing::eight_seconds(8, 8);
  info.tokens = 0;
  for (history::PatchInfo& patch : info.patches) patch.kept = base::GridMask::none(4, 4);
  FreshPage page;
  page.camera = kGate;
  page.info = info;
  page.forms.push_back(testing::made_tokens(memory, Form::int4, 0));
  remembered->take(std::move(page), clock.now());
  write();
  ask(1, "Did a car stop?", after_noon(0, 16));
  hear();
  ASSERT_EQ(to_read.size(), 1U);
  desk->read(to_read[0].id, values_of(to_read[0]));
  const QuestionDesk::News news = desk->take_news();
  ASSERT_EQ(news.windows.size(), 1U);
  ASSERT_EQ(news.windows[0].what.pages.size(), 2U);
  EXPECT_EQ(news.windows[0].what.pages[0].values.size(), 2U);
  EXPECT_TRUE(news.windows[0].what.pages[1].values.empty());
  desk->give_up(1);
}

// What is held for later windows is bounded, whatever became of those before.
TEST_F(QuestionFormsTest, HoldsNoMoreThanItMay) {
  how.most_held = 7 * kPage;
  how.brief_at_once = 1;
  how.whole_at_once = 1;
  begin_on_disk({{Form::int4, hours(24)}});
  see(0, 1600);
  for (const bool has_failed : {false, true}) {
    std::uint64_t most = 0;
    device = [&](const Window&) { return Said{said(1).answer, false, has_failed}; };
    ask(1, "Did a car stop?", after_noon(0, 1600));
    while (step()) most = std::max(most, *held);
    const PastAnswer found = answer();
    EXPECT_LE(most, how.most_held + 5 * kPage) << "and what the window under way uses";
    EXPECT_GE(most, how.most_held) << "it holds something";
    EXPECT_EQ(*held, 0U);
    if (has_failed) {
      EXPECT_EQ(found.disk_bytes, 200 * kPage) << "what the next window shows, too, is not read again";
      continue;
    }
    // Each page once, but for those of the windows that were asked whole, which had gone.
    EXPECT_EQ(found.disk_bytes, 214 * kPage);
  }
}

TEST_F(QuestionFormsTest, WhatWasReadTwiceCountsTwice) {
  how.most_held = 0;
  how.brief_at_once = 1;
  begin_on_disk({{Form::int4, hours(24)}});
  see(0, 48);
  ask(1, "Did a car stop?", after_noon(0, 48));
  EXPECT_EQ(answer().disk_bytes, 3 * 5 * kPage) << "two windows by what stands out, and one whole";
}

}  // namespace
}  // namespace vigil::memory
