// What windows still show becomes pages, too (StreamDesk::show).
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/memory/page_maker_world.h"

namespace vigil::memory {
namespace {

using namespace testing;
using std::chrono::seconds;

TEST_F(PageMakerTest, WhatIsShownIsAPageAtOnceAndLeavesUnseen) {
  open("gate", {Form::int4});
  watch("gate", 6);
  EXPECT_TRUE(pages.empty());
  const std::int64_t free = room.book.free_pages();
  show("gate");
  ASSERT_EQ(lines(), (Lines{"gate 0-3: int4 6", "gate 3-6: int4 6"})) << "two had left, four stay";
  EXPECT_GE(room.book.free_pages(), free) << "what was gathered is let go of";
  EXPECT_TRUE(room.desk.stream("gate").keeps_pages());
  show("gate");
  EXPECT_EQ(pages.size(), 2U) << "there is nothing new";
  watch("gate", 1);
  show("gate");
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(lines()[2], "gate 6-7: int4 2");
  EXPECT_EQ(pages[2].info.stream, pages[0].info.stream);
  watch("gate", 4);
  EXPECT_EQ(pages.size(), 3U) << "what leaves was shown";
  watch("gate", 3);
  EXPECT_EQ(lines().back(), "gate 7-10: int4 6");
  room.desk.close("gate");
  hear();
  EXPECT_EQ(lines().back(), "gate 13-14: int4 2");
  EXPECT_TRUE(lost.empty());
  // Of others, and of what has ended, nothing is there to be shown.
  show("gate");
  show("nobody");
  EXPECT_EQ(pages.size(), 6U);
}

TEST_F(PageMakerTest, WithoutKeysTheNewestPatchesAreShownToo) {
  open("whole", {Form::int4, Form::embeddings}, "all");
  watch("whole", 4);
  room.desk.append("whole", patch_of(4, 1, 2, 4), start + seconds(5));
  show("whole");
  EXPECT_EQ(lines(), (Lines{"whole 0-3: embeddings 6", "whole 3-5: embeddings 4"}));
  room.desk.close("whole");
  hear();
  EXPECT_EQ(pages.size(), 2U);
  open("bare", {Form::int4}, "all");
  watch("bare", 4);
  show("bare");
  ASSERT_EQ(lost.size(), 2U) << "it is known at once that nobody keeps them";
  EXPECT_EQ(lost[0].why, Forgotten::keyless);
  EXPECT_EQ(lost[0].patches + lost[1].patches, 4U);
}

// Whatever the policy, and whenever it is shown.
TEST_F(PageMakerTest, PagesOfWhatIsShownAtOddMomentsHaveEachPatchOnce) {
  std::mt19937 random(20261129);
  for (const std::string policy : {"none", "all", "first-k", "topk"}) {
    for (const std::string& camera : {"shown-" + policy, "left-" + policy}) {
      open(camera, {Form::int4, Form::embeddings}, policy);
      for (int i = 0; i < 60; ++i) {
        room.desk.append(camera, patch_of(static_cast<float>(i), 1, 2, i), start + seconds(i + 1));
        const bool is_shown = camera.starts_with("shown");
        if (is_shown && random() % 4 == 0) show(camera);
        const std::int64_t first = std::max(0, i - 3);
        room.desk.slide(camera, first);
        if (random() % 2 == 0) continue;
        const stream::WindowId id = room.ask(camera, {first, i + 1}, {question});
        while (room.desk.due()) {
          if (is_shown && random() % 4 == 0) show(camera);
          room.desk.work({room.now});
        }
        room.take_news();
        room.desk.done(id);
      }
      room.desk.close(camera);
      hear();
    }
    std::map<std::string, std::vector<std::int64_t>> numbers;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 60; ++i) all.push_back(i);
    for (const FreshPage& page : std::exchange(pages, {}))
      for (const history::PatchInfo& patch : page.info.patches)
        numbers[page.camera.camera].push_back(patch.number);
    EXPECT_EQ(numbers["shown-" + policy], all) << policy;
    EXPECT_EQ(numbers["left-" + policy], all) << policy;
  }
  EXPECT_TRUE(lost.empty());
  EXPECT_TRUE(room.is_empty());
}

TEST_F(PageMakerTest, WhatGoesWrongWhileItIsShownIsNews) {
  open("gate", {Form::int4});
  watch("gate", 4);
  room.desk.show("gate");
  mover.is_lost = true;
  maker->complete("gate");
  EXPECT_EQ(stream::testing::reason_of(maker->take_news().failure), "the device is lost");
  mover.is_lost = false;
  watch("gate", 6);
  EXPECT_EQ(lines(), Lines{}) << "of what leaves now, the first patches are those";
}

}  // namespace
}  // namespace vigil::memory
