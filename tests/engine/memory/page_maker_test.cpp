#include "engine/memory/page_maker.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/memory/page_maker_world.h"

namespace vigil::memory {
namespace {

using namespace testing;
using std::chrono::hours;
using std::chrono::seconds;

TEST_F(PageMakerTest, WholePatchesMakeAPageAndItsPlacesAreTheDesksAgain) {
  open("gate", {Form::int4});
  watch("gate", 6);
  EXPECT_TRUE(pages.empty()) << "two patches have left, three make a page";
  const std::int64_t taken = room.book.pages() - room.book.free_pages();
  watch("gate", 1);
  ASSERT_EQ(lines(), Lines{"gate 0-3: int4 6"});
  EXPECT_LE(room.book.pages() - room.book.free_pages(), taken);
  const FreshPage& page = pages.front();
  EXPECT_EQ(page.camera, (history::CameraId{"city", "gate"}));
  EXPECT_EQ(page.info.tokens, 6U);
  EXPECT_NE(page.info.stream, 0U);
  EXPECT_EQ(page.change, 1);
  const auto before = static_cast<std::int32_t>(room.prompts.before());
  for (std::size_t i = 0; i < 3; ++i) {
    const history::PatchInfo& patch = page.info.patches[i];
    EXPECT_EQ(patch.number, static_cast<std::int64_t>(i));
    EXPECT_EQ(patch.row, before);
    EXPECT_EQ(patch.column, before);
    EXPECT_EQ(patch.kept, base::GridMask::all(1, 2));
    EXPECT_EQ(patch.seconds, static_cast<double>(i));
    const std::int64_t begin = std::chrono::nanoseconds(start.time_since_epoch()).count();
    EXPECT_EQ(patch.wall.from, begin + static_cast<std::int64_t>(i) * 1'000'000'000);
    EXPECT_EQ(patch.wall.to, patch.wall.from + 1'000'000'000);
  }
  EXPECT_EQ(page.info.patches[0].place, before);
  EXPECT_LT(page.info.patches[1].place, page.info.patches[2].place);
  EXPECT_EQ(history::fault_of([&] {
              history::PageInfo info = page.info;
              info.number = 1;
              return info;
            }()),
            std::nullopt);
  EXPECT_GT(memory.used(), 0U);
  pages.clear();
  EXPECT_EQ(memory.used(), 0U);
  watch("gate", 3);
  EXPECT_EQ(lines(), Lines{"gate 3-6: int4 6"});
}

TEST_F(PageMakerTest, WhatIsPackedIsWhatWasThere) {
  open("gate", {Form::bf16, Form::embeddings});
  for (int i = 0; i < 4; ++i)
    room.desk.append("gate", patch_of(static_cast<float>(i), 1, 2, i), start + seconds(i + 1));
  look("gate");
  struct Copy final : stream::PageSink {
    Copy(PageMaker& to, stream::testing::SimulatedPasses& of) : maker(to), passes(of) {}
    void take(stream::LeavingTokens tokens) noexcept override {
      for (const std::int32_t slot : tokens.view.slots()) values.push_back(passes.value_at(slot));
      maker.take(std::move(tokens));
    }
    PageMaker& maker;
    stream::testing::SimulatedPasses& passes;
    std::vector<std::uint64_t> values;
  };
  const auto copy = std::make_shared<Copy>(*maker, room.passes);
  room.desk.leave_to(copy);
  room.desk.close("gate");
  hear();
  ASSERT_EQ(lines(), (Lines{"gate 0-3: bf16 6 embeddings 6", "gate 3-4: bf16 2 embeddings 2"}));
  std::vector<std::uint64_t> packed, embedded;
  for (const FreshPage& page : pages) {
    for (const std::uint64_t value : ScriptedMover::values_of(page.forms[0])) packed.push_back(value);
    for (const std::uint64_t value : ScriptedMover::values_of(page.forms[1])) embedded.push_back(value);
  }
  EXPECT_EQ(packed, copy->values);
  for (std::size_t i = 0; i < embedded.size(); ++i)
    EXPECT_EQ(embedded[i], stream::testing::SimulatedPasses::input_of(static_cast<float>(i / 2) +
                                                                      static_cast<float>(i % 2) / 64));
}

TEST_F(PageMakerTest, AnotherHourGridOrStreamBeginsAPage) {
  open("gate", {Form::int4});
  start += std::chrono::minutes(59) + seconds(58);
  watch("gate", 8);
  EXPECT_EQ(lines(), Lines{"gate 0-2: int4 4"}) << "the third begins in the next hour";
  watch("gate", 1);
  EXPECT_EQ(lines(), (Lines{"gate 0-2: int4 4", "gate 2-5: int4 6"}));
  // A camera whose pictures have another size; no window shows both.
  for (int i = 0; i < 4; ++i) {
    const auto next = static_cast<double>(room.desk.stream("gate").patches().last);
    room.desk.append("gate", patch_of(static_cast<float>(next), 1, 1, next), start + seconds(100 + i));
  }
  look("gate");
  EXPECT_EQ(lines(), (Lines{"gate 0-2: int4 4", "gate 2-5: int4 6", "gate 5-8: int4 6"}));
  room.desk.close("gate");
  hear();
  EXPECT_EQ(lines().size(), 5U) << "of two tokens, and of four";
  EXPECT_EQ(lines()[3], "gate 8-9: int4 2");
  EXPECT_EQ(lines()[4], "gate 9-13: int4 4");
  const std::uint64_t stream = pages.back().info.stream;
  EXPECT_EQ(pages.front().info.stream, stream);
  room.desk.open("gate", stream::make_refresh("none"));
  start += std::chrono::minutes(5);
  watch("gate", 7);
  EXPECT_EQ(lines().back(), "gate 0-3: int4 6");
  EXPECT_NE(pages.back().info.stream, stream);
}

// A quiet night is remembered as well: that nothing happened is worth knowing.
TEST_F(PageMakerTest, PatchesWithoutTokensCountAsPatches) {
  open("gate", {Form::int4});
  for (int i = 0; i < 14; ++i) {
    room.desk.append("gate", patch_of(static_cast<float>(i), base::GridMask::none(1, 2), i),
                     start + seconds(i + 1));
    if (i == 0) continue;
    look("gate");
  }
  ASSERT_EQ(lines(), (Lines{"gate 0-5: int4 0", "gate 5-10: int4 0"}));
  EXPECT_EQ(pages[0].change, 0);
  EXPECT_EQ(pages[0].info.patches.size(), 5U);
}

TEST_F(PageMakerTest, WhatLeavesTwiceIsRememberedOnce) {
  open("gate", {Form::int4});
  for (int i = 0; i < 4; ++i)
    room.desk.append("gate", patch_of(static_cast<float>(i), 1, 2, i), start + seconds(i + 1));
  look("gate");
  room.desk.follow("gate", stream::make_refresh("none"));
  look("gate");
  room.desk.close("gate");
  hear();
  EXPECT_EQ(lines(), (Lines{"gate 0-3: int4 6", "gate 3-4: int4 2"}));
  EXPECT_TRUE(lost.empty());
}

TEST_F(PageMakerTest, WithoutKeysEmbeddingsAreAllThereIs) {
  open("whole", {Form::int4, Form::embeddings}, "all");
  watch("whole", 8);
  EXPECT_EQ(lines(), Lines{"whole 0-3: embeddings 6"});
  open("bare", {Form::int4}, "all");
  watch("bare", 8);
  EXPECT_EQ(lines(), Lines{"whole 0-3: embeddings 6"});
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].why, Forgotten::keyless);
  EXPECT_EQ(lost[0].patches, 3U);
  EXPECT_EQ(lost[0].wall.to - lost[0].wall.from, 3'000'000'000);
  EXPECT_EQ(lost[0].camera.camera, "bare");
}

/// So many tokens of a row, and which of them stand out; nothing: nobody said.
model::VisualTokensPtr said(int seed, const std::vector<int>& kept,
                            const std::optional<std::vector<int>>& standing_out) {
  const auto mask = [](const std::vector<int>& cells) {
    base::GridMask made = base::GridMask::none(1, 4);
    for (const int cell : cells) made.add(cell);
    return made;
  };
  const auto patch = std::const_pointer_cast<model::VisualTokens>(
      patch_of(static_cast<float>(seed), mask(kept), static_cast<double>(seed)));
  if (standing_out) patch->standing_out = mask(*standing_out);
  return patch;
}

TEST_F(PageMakerTest, ASketchHasTheTokensThatStandOut) {
  open("gate", {Form::int4, Form::sketch});
  const std::vector<model::VisualTokensPtr> patches = {said(0, {0, 2, 3}, {{3}}), said(1, {}, std::nullopt),
                                                       said(2, {1}, {{}}), said(3, {0, 1}, {{0, 1}})};
  for (int i = 0; i < 4; ++i)
    room.desk.append("gate", patches[static_cast<std::size_t>(i)], start + seconds(i + 1));
  look("gate");
  room.desk.close("gate");
  hear();
  ASSERT_EQ(lines(), Lines{"gate 0-4: int4 6 sketch 3"});
  const FreshPage& page = pages.front();
  EXPECT_EQ(page.info.tokens, 6U);
  ASSERT_TRUE(page.sketch);
  EXPECT_EQ(page.sketch->tokens, 3U);
  ASSERT_EQ(page.sketch->patches.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    history::PatchInfo patch = page.sketch->patches[i];
    EXPECT_EQ(patch.kept, patches[i]->standing_out.value_or(base::GridMask::none(1, 4))) << i;
    patch.kept = page.info.patches[i].kept;
    EXPECT_EQ(patch, page.info.patches[i]) << "all but its tokens";
  }
  const std::vector<std::uint64_t> all = ScriptedMover::values_of(page.forms[0]);
  EXPECT_EQ(ScriptedMover::values_of(page.forms[1]), (std::vector{all[2], all[4], all[5]}));
}

TEST_F(PageMakerTest, WhereNothingStandsOutASketchSaysSo) {
  open("gate", {Form::int4, Form::sketch});
  for (int i = 0; i < 4; ++i) room.desk.append("gate", said(i, {1, 2}, {{}}), start + seconds(i + 1));
  look("gate");
  room.desk.close("gate");
  hear();
  ASSERT_EQ(lines(), (Lines{"gate 0-3: int4 6 sketch 0", "gate 3-4: int4 2 sketch 0"}));
  EXPECT_EQ(pages[0].sketch->patches.size(), 3U);
}

TEST_F(PageMakerTest, WithoutAWordOnAPatchOrWithoutKeysThereIsNoSketch) {
  open("gate", {Form::int4, Form::sketch});
  for (int i = 0; i < 4; ++i)
    room.desk.append("gate", said(i, {1, 2}, i == 1 ? std::nullopt : std::optional(std::vector{1})),
                     start + seconds(i + 1));
  look("gate");
  room.desk.close("gate");
  hear();
  EXPECT_EQ(lines(), (Lines{"gate 0-3: int4 6", "gate 3-4: int4 2 sketch 1"}));
  EXPECT_FALSE(pages[0].sketch);
  open("whole", {Form::embeddings, Form::sketch}, "all");
  for (int i = 0; i < 4; ++i) room.desk.append("whole", said(i, {1, 2}, {{1}}), start + seconds(i + 1));
  look("whole");
  room.desk.close("whole");
  hear();
  EXPECT_EQ(lines()[2], "whole 0-3: embeddings 6");
  EXPECT_TRUE(lost.empty()) << "what was asked for beside it is there";
}

// The present never waits for the past: what has no room is lost, and told.
TEST_F(PageMakerTest, WhatHasNoRoomIsLost) {
  open("gate", {Form::int4});
  mover.has_room = false;
  watch("gate", 7);
  EXPECT_TRUE(pages.empty());
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].why, Forgotten::no_room);
  EXPECT_EQ(lost[0].patches, 3U);
  mover.has_room = true;
  watch("gate", 3);
  EXPECT_EQ(lines(), Lines{"gate 3-6: int4 6"});
  mover.is_lost = true;
  const auto next = static_cast<double>(room.desk.stream("gate").patches().last);
  room.desk.append("gate", patch_of(9, 1, 2, next), start + seconds(60));
  room.desk.close("gate");
  const PageMaker::News news = maker->take_news();
  EXPECT_EQ(stream::testing::reason_of(news.failure), "the device is lost");
  maker->forget_all();
  EXPECT_TRUE(room.is_empty());
}

TEST_F(PageMakerTest, WhatNobodyTimedIsNotRemembered) {
  open("gate", {Form::int4});
  for (int i = 0; i < 4; ++i) {
    const auto captured = i == 1 ? std::nullopt : std::optional(start + seconds(i + 1));
    room.desk.append("gate", patch_of(static_cast<float>(i), 1, 2, i), captured);
  }
  look("gate");
  room.desk.close("gate");
  hear();
  EXPECT_EQ(lines(), (Lines{"gate 0-1: int4 2", "gate 2-4: int4 4"}));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].why, Forgotten::untimed);
}

TEST_F(PageMakerTest, OtherCamerasAreNoneOfItsBusiness) {
  room.desk.open("audit", stream::make_refresh("none"));
  watch("audit", 8);
  EXPECT_TRUE(pages.empty());
  EXPECT_TRUE(lost.empty());
  open("gate", {Form::int4});
  watch("gate", 6);
  // Somebody else's from here on: what was gathered is the former one's.
  maker->remember("gate", {{"village", "gate"}, {Form::int4}});
  hear();
  ASSERT_EQ(lines(), Lines{"gate 0-2: int4 4"});
  EXPECT_EQ(pages[0].camera.tenant, "city");
  watch("gate", 3);
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_EQ(pages[1].camera.tenant, "village");
  watch("gate", 2);
  maker->forget("gate");
  hear();
  EXPECT_EQ(lines().back(), "gate 5-7: int4 4");
  watch("gate", 5);
  EXPECT_EQ(pages.size(), 3U);
}

// A window that lacks room gets what is gathered, before streams give what they keep.
TEST_F(PageMakerTest, LetsGoForWindows) {
  open("gate", {Form::int4});
  watch("gate", 6);
  EXPECT_TRUE(pages.empty());
  int most = 1;
  const std::vector asked{question};
  while (room.desk.pages_for(2 * (most + 1), asked) <= room.book.free_pages() + 1) ++most;
  room.desk.open("yard", stream::make_refresh("none"));
  for (int i = 0; i < most; ++i) room.desk.append("yard", patch_of(static_cast<float>(i), 1, 2, i));
  const stream::WindowId id = room.ask("yard", {0, most}, {question});
  room.run();
  EXPECT_NE(room.answered(id), nullptr);
  hear();
  EXPECT_EQ(lines(), Lines{"gate 0-2: int4 4"});
  EXPECT_TRUE(room.desk.stream("gate").keeps_pages()) << "that was enough";
}

}  // namespace
}  // namespace vigil::memory
