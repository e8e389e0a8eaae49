// A stretch of the past of which only the newest seconds are a window, asked by clusters of what lies before.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/memory/recall_world.h"

namespace vigil::memory {
namespace {

using kv::Form;
using stream::testing::demo_model;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RecallDeskTest;
using ::testing::SizeIs;

struct RecallClustersTest : RecallDeskTest {
  /// A camera whose windows could use more than there is for what lies before them, and have a patch there.
  void remember_hours(stream::StreamDesk& desk, const std::string& camera) {
    desk.open(camera, stream::make_refresh("none"));
    desk.set_memory(camera, std::chrono::hours(10));
    for (const auto& patch : stream::testing::noise_window(2, 5))
      desk.append(camera, transfer.to_device(patch));
    stream::Asking asking;
    asking.patches = {0, 2};
    asking.questions.push_back({questions.front(), {}});
    const stream::WindowId id = desk.ask(camera, std::move(asking));
    while (desk.due()) desk.work({at.clock.now()});
    desk.done(id);
    desk.slide(camera, 1);
  }
};

TEST_F(RecallClustersTest, TheNewestSecondsAreAWindow) {
  watch();
  Recalling clusters = all(Form::bf16);
  clusters.by_clusters = true;
  const std::vector<stream::Answer> said = ask(clusters), whole = ask(all(Form::bf16));
  ASSERT_EQ(said.size(), questions.size());
  EXPECT_EQ(most_before, 0) << "all of it is the window";
  for (std::size_t i = 0; i < said.size(); ++i)
    EXPECT_NEAR(said[i].probability_yes, whole[i].probability_yes, 1e-5);
}

TEST_F(RecallClustersTest, WhatHasNoRoomInTheHostIsNotAnswered) {
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
  EXPECT_THAT(failures[0].reason, HasSubstr("has no room in them"));
  EXPECT_FALSE(failures[0].is_busy);
}

// Others' memories may take their part of what it had: with what is left it may do.
TEST_F(RecallClustersTest, WhatHadRoomUntilOthersCameIsAskedAgain) {
  watch(0, "gate", 40);
  const model::TextConfig& text = at.model->folder->config.text;
  // Of all but the window.
  const std::int64_t bytes =
      std::int64_t{32} * 12 * 4 * text.num_hidden_layers * text.num_key_value_heads * text.head_dim;
  struct {
    double rekv_share;
    std::int64_t budget;
    int others;
  } const ways[] = {{0.5, bytes * 8 / 5, 1}, {0, bytes * 14 / 5, 3}};
  for (const auto& way : ways) {
    stream::StreamDesk::Options options;
    options.memory_bytes = way.budget;
    stream::StreamDesk small(*at.model->folder, at.model->prompts, at.model->book, at.passes, options);
    RecallDesk of(small, mover, transfer, demo_model()->config);
    Recalling clusters = all(Form::bf16);
    clusters.by_clusters = true;
    clusters.rekv_share = way.rekv_share;
    EXPECT_EQ(ask(clusters, of, small).size(), questions.size()) << "alone";
    ASSERT_FALSE(of.ask(++tickets, clusters));
    for (std::size_t page = 0; page + 1 < clusters.pages.size(); ++page) of.work({});
    stream::DeskNews news = small.take_news();
    EXPECT_THAT(news.forgotten, IsEmpty());
    EXPECT_THAT(news.shortened, IsEmpty());
    EXPECT_EQ(of.open(), 1U);
    for (int i = 0; i < way.others; ++i) remember_hours(small, "yard-" + std::to_string(i));
    news = small.take_news();
    EXPECT_EQ(news.forgotten.size() + news.shortened.size(), 1U);
    for (const auto& each : news.forgotten) EXPECT_TRUE(of.forgotten(each));
    for (const auto& each : news.shortened) EXPECT_TRUE(of.shortened(each));
    const RecallDesk::News told = of.take_news();
    ASSERT_THAT(told.failed, SizeIs(1));
    EXPECT_EQ(told.failed[0].ticket, tickets);
    EXPECT_TRUE(told.failed[0].is_busy);
    EXPECT_EQ(of.open(), 0U);
    // Once more it begins with what there is now.
    failures.clear();
    EXPECT_THAT(ask(clusters, of, small), IsEmpty());
    ASSERT_THAT(failures, SizeIs(1));
    EXPECT_FALSE(failures[0].is_busy) << failures[0].reason;
    for (int i = 0; i < way.others; ++i) small.close("yard-" + std::to_string(i));
    EXPECT_EQ(ask(clusters, of, small).size(), questions.size()) << "alone again";
  }
}

TEST_F(RecallClustersTest, WhatIsBeforeIsSeenAsIsChosen) {
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
  EXPECT_THAT(failures, IsEmpty());
  EXPECT_EQ(at.free_pages(), free);
}

TEST_F(RecallClustersTest, WhatCannotBeSeenFailsAndLeavesNothing) {
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
  EXPECT_THAT(ask(clusters), IsEmpty());
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0].reason, HasSubstr("100 bytes"));
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
    EXPECT_THAT(ask(sound), IsEmpty());
    EXPECT_TRUE(failures.back().is_busy);
  }
  // Given up before its first page has come.
  ASSERT_FALSE(recalls.ask(++tickets, sound));
  recalls.give_up(tickets);
  EXPECT_EQ(recalls.open(), 0U);
  EXPECT_FALSE(recalls.due());
  EXPECT_EQ(at.free_pages(), free);
}

}  // namespace
}  // namespace vigil::memory
