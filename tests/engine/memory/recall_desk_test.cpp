// A window of the demo model that has left its camera's stream, and is asked again.
#include "engine/memory/recall_desk.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/memory/recall_world.h"

namespace vigil::memory {
namespace {

using kv::Form;
using testing::RecallDeskTest;

TEST_F(RecallDeskTest, AWindowBackAtItsPlacesSaysTheSame) {
  watch();
  const std::int64_t free = at.free_pages();
  const std::vector<stream::Answer> said = ask(all(Form::bf16));
  ASSERT_EQ(said.size(), answers.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (type == kernels::DType::bf16) {
      EXPECT_EQ(said[i].probability_yes, answers[i].probability_yes) << "to the last bit";
    } else {
      EXPECT_NEAR(said[i].probability_yes, answers[i].probability_yes, 0.02);
    }
    EXPECT_EQ(said[i].tokens, answers[i].tokens);
    EXPECT_EQ(said[i].text, answers[i].text);
    EXPECT_EQ(said[i].prompt_tokens, answers[i].prompt_tokens);
  }
  EXPECT_EQ(at.free_pages(), free);
}

TEST_F(RecallDeskTest, CoarserFormsSayAlmostTheSame) {
  watch();
  for (const Form form : {Form::fp8, Form::int4, Form::embeddings}) {
    const std::vector<stream::Answer> said = ask(all(form));
    ASSERT_EQ(said.size(), answers.size()) << name_of(form);
    for (std::size_t i = 0; i < said.size(); ++i)
      EXPECT_NEAR(said[i].probability_yes, answers[i].probability_yes, 0.05) << name_of(form);
  }
  // Some pages by keys, and others by what the tower made of them.
  Recalling mixed = all(Form::bf16);
  mixed.pages[1] = recalled(pages[1], Form::embeddings);
  const std::vector<stream::Answer> said = ask(mixed);
  ASSERT_EQ(said.size(), answers.size());
  EXPECT_NEAR(said[0].probability_yes, answers[0].probability_yes, 0.05);
}

// Looks are texts of one token, and nothing else calls for a desk's next news where no camera is.
TEST_F(RecallDeskTest, WhatIsOneTokenLongIsToldWithTheWindowsAnswer) {
  watch();
  Recalling looked = all(Form::bf16);
  looked.questions = {
      at.questions.compile({.text = "Is there a car?", .max_tokens = 1, .sampling = {}, .on_text = {}})};
  ASSERT_FALSE(recalls.ask(1, looked));
  while (at.desk.due()) at.desk.work({at.clock.now()});
  const stream::DeskNews desk = at.desk.take_news();
  ASSERT_EQ(desk.answered.size(), 1U);
  EXPECT_TRUE(recalls.answered(desk.answered[0]));
  const RecallDesk::News news = recalls.take_news();
  ASSERT_EQ(news.answered.size(), 1U) << "without the desk's next news";
  ASSERT_EQ(news.answered[0].second.size(), 1U);
  EXPECT_EQ(news.answered[0].second[0].tokens.size(), 1U);
  EXPECT_EQ(recalls.open(), 0U);
  EXPECT_TRUE(at.desk.take_news().told.empty());
}

// Differences of places are all that counts: an hour later, moved to the beginning, it says the same.
TEST_F(RecallDeskTest, WhatIsMovedTogetherSaysTheSame) {
  watch(4000);
  Recalling moved = all(Form::bf16);
  moved.moves_together = true;
  std::vector<stream::Answer> said = ask(moved);
  ASSERT_EQ(said.size(), answers.size());
  for (std::size_t i = 0; i < said.size(); ++i)
    EXPECT_NEAR(said[i].probability_yes, answers[i].probability_yes, 0.02);
  // Two streams' pages, side by side.
  const std::vector<FreshPage> first = std::exchange(pages, {});
  watch(0, "yard");
  Recalling both;
  both.questions = questions;
  both.moves_together = true;
  both.pages = {recalled(first.front(), Form::bf16), recalled(pages.front(), Form::int4)};
  EXPECT_EQ(ask(both).size(), questions.size());
}

/// The keys and values of the tokens that stand out, picked from those of a whole page by where they lie in
/// it.
RecalledPage picked(const FreshPage& page, const kv::PageLayout& layout,
                    const std::shared_ptr<std::vector<std::byte>>& into) {
  const run::MovedTokens& whole = page.forms.front();
  EXPECT_EQ(whole.form, Form::bf16);
  std::vector<std::int64_t> rows;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < page.info.patches.size(); ++i)
    for (const std::int32_t cell : page.info.patches[i].kept.list()) {
      if (page.sketch->patches[i].kept.has(cell)) rows.push_back(row);
      ++row;
    }
  const kernels::PackedShape from = packed_shape(Form::bf16, layout, row);
  const kernels::PackedShape to = packed_shape(Form::bf16, layout, static_cast<std::int64_t>(rows.size()));
  into->resize(static_cast<std::size_t>(to.bytes()));
  // Of bf16, a head's tokens lie one behind the other.
  const auto bytes = static_cast<std::size_t>(from.row_bytes());
  for (std::int64_t segment = 0; segment < 2 * from.layers * from.kv_heads; ++segment)
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(into->data() + static_cast<std::size_t>(segment * to.segment_bytes()) + i * bytes,
                  whole.bytes.get() + segment * from.segment_bytes() + rows[i] * from.row_bytes(), bytes);
  return {*page.sketch, Form::bf16, {{*into, 0, 0, into}}, 0, page.sketch->patches.size()};
}

// A window of sketches alone is one over their tokens, at the places of these.
TEST_F(RecallDeskTest, SketchesAreAskedAsTheTokensThatTheyHave) {
  watch(4000);
  kv::PageLayout layout = at.model->parts.front()->pages.layout();
  std::int64_t all_tokens = 0, tokens = 0;
  for (const FreshPage& page : pages) {
    ASSERT_TRUE(page.sketch);
    all_tokens += page.info.tokens;
    tokens += page.sketch->tokens;
  }
  EXPECT_GT(tokens, 10);
  EXPECT_LT(tokens, all_tokens / 2);
  for (const bool moves_together : {false, true}) {
    Recalling sketches = all(Form::sketch), same = all(Form::bf16);
    sketches.moves_together = same.moves_together = moves_together;
    for (std::size_t i = 0; i < pages.size(); ++i)
      same.pages[i] = picked(pages[i], layout, std::make_shared<std::vector<std::byte>>());
    const std::vector<stream::Answer> said = ask(sketches), expected = ask(same),
                                      whole = ask(all(Form::bf16));
    ASSERT_EQ(said.size(), questions.size());
    ASSERT_EQ(expected.size(), questions.size());
    bool differs = false;
    for (std::size_t i = 0; i < said.size(); ++i) {
      EXPECT_NEAR(said[i].probability_yes, expected[i].probability_yes, 0.05) << "but for four bits";
      EXPECT_EQ(said[i].prompt_tokens, expected[i].prompt_tokens);
      EXPECT_EQ(whole[i].prompt_tokens - said[i].prompt_tokens, all_tokens - tokens);
      differs = differs || std::abs(whole[i].probability_yes - expected[i].probability_yes) > 0.001;
    }
    EXPECT_TRUE(differs) << "it is not the whole window that is asked";
  }
  // A page without any, between others.
  Recalling gap = all(Form::sketch);
  history::PageInfo& info = gap.pages[1].info;
  info.tokens = 0;
  for (history::PatchInfo& patch : info.patches)
    patch.kept = base::GridMask::none(patch.kept.height(), patch.kept.width());
  gap.pages[1].values.clear();
  EXPECT_EQ(ask(gap).size(), questions.size());
}

// An answer without the oldest of it would be about something else.
TEST_F(RecallDeskTest, APartOfAPageIsEnough) {
  watch();
  Recalling part = all(Form::bf16);
  part.pages.front().first = 1;
  part.pages.pop_back();
  const std::vector<stream::Answer> said = ask(part);
  ASSERT_EQ(said.size(), answers.size());
  EXPECT_LT(said[0].prompt_tokens, answers[0].prompt_tokens);
  // Layers that come one by one.
  Recalling layered = all(Form::int4);
  for (RecalledPage& page : layered.pages) {
    const RecalledPage::Value whole = page.values.front();
    page.values.clear();
    const std::size_t each = whole.bytes.size() / 6;
    for (std::size_t layer = 0; layer < 6; layer += 2)
      page.values.push_back(
          {whole.bytes.subspan(layer * each, 2 * each), static_cast<std::int64_t>(layer), 2, whole.owner});
  }
  const std::vector<stream::Answer> in_layers = ask(layered), whole = ask(all(Form::int4));
  ASSERT_EQ(in_layers.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(in_layers[i].probability_yes, whole[i].probability_yes);
}

TEST_F(RecallDeskTest, WhatCannotBeAskedIsRefusedAndLeavesNothing) {
  watch();
  const std::int64_t free = at.free_pages();
  const auto reason = [&](const Recalling& recalling) {
    const auto refusal = recalls.ask(++tickets, recalling);
    return refusal ? refusal->reason : "";
  };
  EXPECT_EQ(reason({}), "nothing is remembered");
  Recalling bad = all(Form::int4);
  bad.pages[1].values[0].bytes = bad.pages[1].values[0].bytes.first(100);
  EXPECT_NE(reason(bad).find("100 bytes"), std::string::npos) << reason(bad);
  bad = all(Form::embeddings);
  bad.pages[0].values.clear();
  EXPECT_EQ(reason(bad), "a page of embeddings has another number of bytes");
  bad = all(Form::int4);
  bad.pages[0].last = 99;
  EXPECT_EQ(reason(bad), "a page that is recalled without patches");
  bad = all(Form::int4);
  std::swap(bad.pages[0], bad.pages[1]);
  EXPECT_NE(reason(bad), "");
  bad = all(Form::int4);
  bad.pages[0].info.tokens += 1;
  EXPECT_EQ(reason(bad), "a page that is recalled has other tokens than its patches");
  Recalling large = all(Form::bf16);
  large.moves_together = true;
  const std::vector<RecalledPage> once = large.pages;
  for (int i = 0; i < 20; ++i) large.pages.insert(large.pages.end(), once.begin(), once.end());
  const auto refusal = recalls.ask(++tickets, large);
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->is_busy);
  EXPECT_EQ(at.free_pages(), free);
  EXPECT_EQ(recalls.open(), 0U);
}

TEST_F(RecallDeskTest, WhoGivesUpHearsNothing) {
  watch();
  const std::int64_t free = at.free_pages();
  ASSERT_FALSE(recalls.ask(7, all(Form::int4)));
  EXPECT_LT(at.free_pages(), free);
  recalls.give_up(7);
  recalls.give_up(7);
  EXPECT_EQ(at.free_pages(), free);
  const stream::DeskNews news = at.work();
  for (const auto& each : news.failed) EXPECT_TRUE(recalls.failed(each));
  EXPECT_TRUE(recalls.take_news().answered.empty());
  EXPECT_TRUE(recalls.take_news().failed.empty());
  stream::DeskNews::Failed other;
  other.window.camera = "gate";
  EXPECT_FALSE(recalls.failed(other)) << "somebody else's";
}

}  // namespace
}  // namespace vigil::memory
