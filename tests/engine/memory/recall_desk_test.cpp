// A window of the demo model that has left its camera's stream, and is asked again.
#include "engine/memory/recall_desk.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/memory/page_maker.h"
#include "engine/run/stream_token_mover.h"
#include "tests/engine/stream/demo_desk.h"
#include "tests/kernels/on_device.h"

namespace vigil::memory {
namespace {

using kv::Form;
using stream::testing::demo_model;
using stream::testing::ModelDesk;

constexpr std::int64_t kPatches = 8;

/// Of the device under test; without one, all is skipped.
kernels::Stream stream_here() {
  return kernels::cuda_devices() > 0 ? kernels::test_stream() : kernels::Stream::cpu(1);
}

struct RecallDeskTest : ::testing::Test {
  kernels::DType type =
      kernels::tests_on_gpu() || kernels::cpu_has_bf16() ? kernels::DType::bf16 : kernels::DType::f32;
  std::vector<kernels::Stream> streams{stream_here()};
  ModelDesk at{std::make_shared<run::CachedModel>(
                   demo_model(),
                   run::CachedModelOptions{
                       .memory = {stream_here()}, .compute = type, .kv_tokens = 1024, .page_tokens = 64}),
               streams};
  run::StreamTokenMover mover{*at.model, streams};
  run::TokenTransfer transfer{streams.front()};
  kernels::HostMemory memory{streams.front(), std::uint64_t{1} << 28U};
  std::shared_ptr<PageMaker> maker =
      std::make_shared<PageMaker>(mover, memory, PageMaker::Options{.tokens = 40});
  RecallDesk recalls{at.desk, mover, transfer, demo_model()->config};
  std::vector<stream::CompiledQuestionPtr> questions;
  std::vector<FreshPage> pages;
  std::vector<stream::Answer> answers;
  std::uint64_t tickets = 0;
  /// Tokens before a window that were seen by clusters, at most; and what failed.
  std::int64_t most_before = 0;
  std::vector<RecallDesk::News::Failed> failures;

  void SetUp() override {
    VIGIL_SKIP_WITHOUT_DEVICE();
    at.desk.leave_to(maker);
    for (const stream::Question& rule : stream::testing::rules())
      questions.push_back(at.questions.compile(rule));
  }
  void TearDown() override { maker->forget_all(); }

  /// A camera sees eight patches from so many seconds on, is asked twice, and ends: its pages, and what it
  /// said the second time, when all keys were there.
  void watch(double begin = 0, const std::string& camera = "gate", std::int64_t count = kPatches) {
    maker->remember(camera,
                    {{"city", camera}, {Form::bf16, Form::fp8, Form::int4, Form::embeddings, Form::sketch}});
    at.desk.open(camera, stream::make_refresh("none"));
    const auto patches =
        stream::testing::noise_window(static_cast<int>(count), 5, 112, 84, kernels::DType::f32, begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto seen = transfer.to_device(patches[static_cast<std::size_t>(i)]);
      std::const_pointer_cast<model::VisualTokens>(seen)->standing_out = standing_out(i, seen->kept);
      at.desk.append(camera, seen,
                     base::Clock::WallTime(std::chrono::hours(480'000) + std::chrono::seconds(i + 1)));
    }
    for (int time = 0; time < 2; ++time) {
      stream::Asking asking;
      asking.patches = {0, count};
      for (const auto& question : questions) asking.questions.push_back({question, {}});
      const stream::WindowId id = at.desk.ask(camera, std::move(asking));
      stream::DeskNews news = at.work();
      ASSERT_EQ(news.answered.size(), 1U);
      answers = news.answered[0].answers;
      for (std::size_t i = 0; i < questions.size(); ++i) at.desk.explain(id, i);
      news = at.work();
      for (const auto& told : news.told) answers[told.question] = told.answer;
      at.desk.done(id);
    }
    at.desk.close(camera);
    pages = maker->take_news().pages;
    ASSERT_GE(pages.size(), 2U);
  }
  /// Of patch i: every third patch none, otherwise every other or every third token.
  static base::GridMask standing_out(std::int64_t i, const base::GridMask& kept) {
    base::GridMask mask = base::GridMask::none(kept.height(), kept.width());
    const std::int64_t every = i % 3 == 0 ? kept.cells() : i % 3 + 1;
    for (std::int64_t cell = every - 1; i % 3 != 0 && cell < kept.cells(); cell += every) mask.add(cell);
    return mask;
  }
  static RecalledPage recalled(const FreshPage& page, Form form) {
    for (const run::MovedTokens& tokens : page.forms)
      if (tokens.form == form)
        return {form == Form::sketch ? page.sketch.value() : page.info,
                form,
                {{{tokens.bytes.get(), tokens.size}, 0, 0, tokens.bytes}},
                0,
                page.info.patches.size()};
    return {};
  }
  Recalling all(Form form) const {
    Recalling recalling;
    for (const FreshPage& page : pages) recalling.pages.push_back(recalled(page, form));
    recalling.questions = questions;
    return recalling;
  }
  /// What is said of the past; nothing if it failed.
  std::vector<stream::Answer> ask(const Recalling& recalling) { return ask(recalling, recalls, at.desk); }
  std::vector<stream::Answer> ask(const Recalling& recalling, RecallDesk& of, stream::StreamDesk& desk) {
    const std::uint64_t ticket = ++tickets;
    const auto refusal = of.ask(ticket, recalling);
    EXPECT_FALSE(refusal) << refusal->reason;
    if (refusal) return {};
    while (of.open() > 0) {
      if (of.due()) {
        of.work({});
        most_before = std::max(most_before, desk.window_memory().tokens);
      } else if (desk.due()) {
        desk.work({at.clock.now()});
      } else {
        break;
      }
      const stream::DeskNews news = desk.take_news();
      for (const auto& each : news.forgotten) EXPECT_TRUE(of.forgotten(each));
      for (const auto& each : news.shortened) EXPECT_TRUE(of.shortened(each));
      for (const auto& each : news.answered) EXPECT_TRUE(of.answered(each));
      for (const auto& each : news.failed) EXPECT_TRUE(of.failed(each));
      for (const auto& each : news.told) EXPECT_TRUE(of.told(each));
      // Of answers that were whole with their first token.
      const stream::DeskNews more = desk.take_news();
      for (const auto& each : more.told) EXPECT_TRUE(of.told(each));
    }
    RecallDesk::News news = of.take_news();
    EXPECT_EQ(of.open(), 0U);
    for (auto& each : news.failed) failures.push_back(std::move(each));
    if (news.answered.empty()) return {};
    EXPECT_EQ(news.answered[0].first, ticket);
    return std::move(news.answered[0].second);
  }
};

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

TEST_F(RecallDeskTest, ByClustersTheNewestSecondsAreAWindow) {
  watch();
  Recalling clusters = all(Form::bf16);
  clusters.by_clusters = true;
  const std::vector<stream::Answer> said = ask(clusters), whole = ask(all(Form::bf16));
  ASSERT_EQ(said.size(), questions.size());
  EXPECT_EQ(most_before, 0) << "all of it is the window";
  for (std::size_t i = 0; i < said.size(); ++i)
    EXPECT_NEAR(said[i].probability_yes, whole[i].probability_yes, 1e-5);
}

// An answer without the oldest of it would be about something else.
TEST_F(RecallDeskTest, ByClustersWhatHasNoRoomInTheHostIsNotAnswered) {
  watch(0, "gate", 40);
  Recalling clusters = all(Form::bf16);
  clusters.by_clusters = true;
  const model::TextConfig& text = at.model->folder->config.text;
  std::int64_t bytes = 0;
  for (const auto& page : pages) bytes += page.info.tokens;
  bytes *= std::int64_t{4} * text.num_hidden_layers * text.num_key_value_heads * text.head_dim;
  for (const bool fits : {true, false}) {
    stream::StreamDesk::Options options;
    options.memory_bytes = fits ? 4 * bytes : bytes / 2;
    stream::StreamDesk small(*at.model->folder, at.model->prompts, at.model->book, at.passes, options);
    RecallDesk of(small, mover, transfer, demo_model()->config);
    EXPECT_EQ(ask(clusters, of, small).empty(), !fits);
    ASSERT_EQ(failures.empty(), fits);
  }
  EXPECT_THAT(failures[0].reason, ::testing::HasSubstr("has no room in them"));
  EXPECT_FALSE(failures[0].is_busy);
}

TEST_F(RecallDeskTest, ByClustersWhatIsBeforeIsSeenAsIsChosen) {
  watch(0, "gate", 14);
  Recalling clusters = all(Form::bf16);
  clusters.by_clusters = true;
  const std::int64_t free = at.free_pages();
  std::int64_t before = 0;
  for (std::size_t page = 0, patch = 0; page < pages.size(); ++page)
    for (const history::PatchInfo& each : pages[page].info.patches)
      if (patch++ < 6) before += each.kept.count();
  // As a camera's own window with a memory: where all is chosen, by the same keys at the same places.
  stream::StreamDesk::Options options;
  options.memory.method = "all";
  stream::StreamDesk seeing(*at.model->folder, at.model->prompts, at.model->book, at.passes, options);
  RecallDesk of_all(seeing, mover, transfer, demo_model()->config);
  const std::vector<stream::Answer> said = ask(clusters, of_all, seeing);
  ASSERT_EQ(said.size(), questions.size());
  EXPECT_EQ(most_before, before);
  const auto of_a_camera = [&](base::Duration length) {
    seeing.open("live", stream::make_refresh("none"));
    seeing.set_memory("live", length);
    for (const auto& patch : stream::testing::noise_window(14, 5))
      seeing.append("live", transfer.to_device(patch));
    stream::DeskNews news;
    for (const std::int64_t first : {0, 6}) {
      seeing.slide("live", first);
      stream::Asking asking;
      asking.patches = {first, 14};
      for (const auto& question : questions) asking.questions.push_back({question, {}});
      const stream::WindowId id = seeing.ask("live", std::move(asking));
      while (seeing.due()) seeing.work({at.clock.now()});
      news = seeing.take_news();
      seeing.done(id);
    }
    seeing.close("live");
    return news.answered.at(0).answers;
  };
  const auto live = of_a_camera(std::chrono::minutes(1)), without = of_a_camera(base::Duration(0));
  for (std::size_t i = 0; i < said.size(); ++i) {
    EXPECT_NEAR(said[i].probability_yes, live[i].probability_yes, 0.002) << "but for bf16";
    EXPECT_GT(said[i].tokens.size(), 0U);
  }
  EXPECT_GT(std::abs(live[0].probability_yes - without[0].probability_yes), 0.002);
  // By ReKV, whatever the desk has: with a share of 1 all of it, with a small one something else.
  clusters.rekv_share = 1;
  const std::vector<stream::Answer> all_of_it = ask(clusters);
  clusters.rekv_share = 0.05;
  const std::vector<stream::Answer> little = ask(clusters, of_all, seeing);
  ASSERT_EQ(all_of_it.size(), questions.size());
  ASSERT_EQ(little.size(), questions.size());
  float far = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    EXPECT_NEAR(all_of_it[i].probability_yes, said[i].probability_yes, 1e-5);
    far = std::max(far, std::abs(little[i].probability_yes - said[i].probability_yes));
  }
  EXPECT_GT(far, 1e-4F);
  // As the engine has it.
  clusters.rekv_share = 0;
  EXPECT_EQ(ask(clusters).size(), questions.size());
  EXPECT_THAT(failures, ::testing::IsEmpty());
  EXPECT_EQ(at.free_pages(), free);
}

TEST_F(RecallDeskTest, ByClustersWhatCannotBeSeenFailsAndLeavesNothing) {
  watch(0, "gate", 14);
  const std::int64_t free = at.free_pages();
  Recalling clusters = all(Form::int4);
  clusters.by_clusters = true;
  clusters.pages[1] = recalled(pages[1], Form::embeddings);
  auto refusal = recalls.ask(++tickets, clusters);
  ASSERT_TRUE(refusal);
  EXPECT_FALSE(refusal->is_busy);
  EXPECT_EQ(refusal->reason, "of what is to be seen by clusters there are no keys");
  // Bytes that are too few are seen when their page comes.
  clusters.pages[1] = recalled(pages[1], Form::int4);
  clusters.pages[1].values[0].bytes = clusters.pages[1].values[0].bytes.first(100);
  EXPECT_THAT(ask(clusters), ::testing::IsEmpty());
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0].reason, ::testing::HasSubstr("100 bytes"));
  EXPECT_FALSE(failures[0].is_busy);
  // Its memory has no room: an answer without it would be about something else.
  Recalling sound = all(Form::int4);
  sound.by_clusters = true;
  ASSERT_FALSE(recalls.ask(++tickets, sound));
  recalls.work({});
  refusal = recalls.ask(tickets + 1, sound);
  ASSERT_TRUE(refusal) << "one at a time";
  EXPECT_TRUE(refusal->is_busy);
  EXPECT_TRUE(recalls.forgotten({std::to_string(tickets) + "#past", "no memory"}));
  EXPECT_FALSE(recalls.forgotten({"gate", "no memory"}));
  EXPECT_FALSE(recalls.shortened({.camera = "gate", .remembered = {}, .wanted = {}, .room = 1, .need = 2}));
  const RecallDesk::News news = recalls.take_news();
  ASSERT_EQ(news.failed.size(), 1U);
  EXPECT_FALSE(news.failed[0].is_busy) << "once more would end alike";
  EXPECT_EQ(recalls.open(), 0U);
  // And where somebody keeps all of the cache.
  {
    const auto claim = at.model->book.claim(at.free_pages());
    EXPECT_THAT(ask(sound), ::testing::IsEmpty());
    EXPECT_TRUE(failures.back().is_busy);
  }
  // Given up before its first page has come.
  ASSERT_FALSE(recalls.ask(++tickets, sound));
  recalls.give_up(tickets);
  EXPECT_EQ(recalls.open(), 0U);
  EXPECT_FALSE(recalls.due());
  EXPECT_EQ(at.free_pages(), free);
}

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
