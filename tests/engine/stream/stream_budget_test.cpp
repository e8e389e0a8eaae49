// What streams keep of the cache, and what leaves them.
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/page_sink.h"
#include "engine/stream/refresh.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using testing::patch_of;
using testing::Room;

/// Holds what it is offered, or not, until it is told to let go.
class Shelf final : public PageSink {
 public:
  explicit Shelf(bool holds = true, bool takes_keyless = false)
      : holds_(holds), takes_keyless_(takes_keyless) {}
  bool takes_keyless() const override { return takes_keyless_; }
  void take(LeavingTokens tokens) noexcept override {
    lines_.push_back(tokens.camera + ' ' + std::string(name_of(tokens.why)) + ' ' +
                     std::to_string(tokens.range().first) + '-' + std::to_string(tokens.range().last) + ": " +
                     std::to_string(tokens.view.size()));
    if (holds_) held_.push_back(std::move(tokens));
  }
  void clear() {
    lines_.clear();
    held_.clear();
  }
  /// Each as "gate slid 0-2: 4", for patches and tokens.
  const std::vector<std::string>& lines() const { return lines_; }

  const std::vector<LeavingTokens>& held() const { return held_; }

 private:
  bool holds_, takes_keyless_;
  std::vector<std::string> lines_;
  std::vector<LeavingTokens> held_;
};
using Lines = std::vector<std::string>;

/// Patches of two tokens in pages of four; the prompt's pages are 0 of these.
struct Budget : ::testing::Test {
  Room room{200, {}, 4};
  std::shared_ptr<Shelf> shelf = std::make_shared<Shelf>();
  CompiledQuestionPtr question = room.question("Is there a car?", 1);

  void open(const std::string& camera, const std::string& policy = "none") {
    room.desk.open(camera, make_refresh(policy));
  }
  /// Patches follow, each of so many groups, and a window of what the budget has room for is asked and done.
  WindowTokens look(const std::string& camera, PatchRange range) {
    const PatchRange within = room.desk.within_budget(camera, range);
    if (within.first > range.first) room.desk.shorten(camera, within.first);
    const WindowId id = room.ask(camera, within, {question});
    room.run();
    room.desk.done(id);
    const auto* answered = room.answered(id);
    if (answered == nullptr) return {};
    EXPECT_EQ(answered->tokens.visual, room.desk.stream(camera).visual_tokens(within));
    return answered->tokens;
  }
};

TEST_F(Budget, AWindowShowsTheNewestThatItHasRoomFor) {
  for (const std::string policy : {"none", "all"}) {
    open(policy, policy);
    for (int i = 0; i < 10; ++i) room.append(policy, static_cast<float>(i));
    EXPECT_EQ(room.desk.within_budget(policy, {1, 9}), (PatchRange{1, 9})) << "there is no budget";
    EXPECT_EQ(room.desk.stream(policy).most_tokens(), std::nullopt);
    // Three pages and a part of one: that is none. Keys that are kept begin anywhere in a page.
    room.desk.set_budget(policy, 15);
    const std::int64_t patches = policy == "none" ? 4 : 6;
    EXPECT_EQ(room.desk.stream(policy).most_tokens(), 2 * patches) << policy;
    EXPECT_EQ(room.desk.within_budget(policy, {0, 10}), (PatchRange{10 - patches, 10})) << policy;
    EXPECT_EQ(room.desk.within_budget(policy, {8, 10}), (PatchRange{8, 10})) << policy;
    EXPECT_THROW(room.ask(policy, {9 - patches, 10}, {}), std::invalid_argument);
    EXPECT_NO_THROW(room.ask(policy, {10 - patches, 10}, {}));
    room.run();
    // Of patches that have left the stream, nothing is to be had.
    room.desk.slide(policy, 9);
    EXPECT_EQ(room.desk.within_budget(policy, {0, 10}), (PatchRange{9, 10})) << policy;
    room.desk.set_budget(policy, 0);
    EXPECT_EQ(room.desk.stream(policy).most_tokens(), std::nullopt);
    room.desk.close(policy);
  }
}

TEST_F(Budget, TellsWhatAWindowIsTooLargeFor) {
  open("gate");
  for (int i = 0; i < 10; ++i) room.append("gate", static_cast<float>(i));
  room.desk.set_budget("gate", 16);
  try {
    room.ask("gate", {0, 10}, {});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "a window of 20 visual tokens is larger than its camera's budget, which has room for 12");
  }
  room.desk.close("gate");
  EXPECT_THROW(room.desk.set_budget("gate", 16), std::invalid_argument) << "it is closed";
  EXPECT_TRUE(room.is_empty());
}

TEST_F(Budget, AStreamNeverKeepsMore) {
  open("gate");
  open("yard");
  room.desk.set_budget("gate", 24);
  std::int64_t last = 0;
  for (; last < 200; ++last) {
    for (const std::string camera : {"gate", "yard"}) {
      // Between none and three groups.
      base::GridMask groups = base::GridMask::none(2, 2);
      for (std::int64_t i = 0; i < last * 7 % 4; ++i) groups.add(i);
      room.append(camera, patch_of(static_cast<float>(last), groups));
      if (last < 20 || last % 3 != 0) continue;
      const PatchRange range{last - 20, last + 1};
      room.desk.slide(camera, range.first);
      const WindowTokens tokens = look(camera, range);
      if (camera == "yard") continue;
      EXPECT_LE(tokens.visual, 20);
      EXPECT_GE(tokens.visual, 15) << "as much as there is room for";
      if (last > 21) {
        EXPECT_GT(tokens.kept, 0) << "and what it kept serves the next window";
      }
    }
    room.news = {};
  }
  EXPECT_LE(room.book.kept(), 6 + room.book.pages_for(21 * 2) + 2);
  room.desk.close("yard");
  EXPECT_GT(room.book.kept(), 0);
  EXPECT_LE(room.book.kept(), 6);
  room.desk.close("gate");
  EXPECT_EQ(room.book.kept(), 0);
  EXPECT_TRUE(room.is_empty());
}

// Its last patch alone is beyond the budget: it is answered all the same, and nothing of it is kept.
TEST_F(Budget, AWindowOfOnePatchIsAlwaysAnswered) {
  room.desk.leave_to(shelf);
  open("gate");
  room.desk.set_budget("gate", 1);
  EXPECT_EQ(room.desk.stream("gate").most_tokens(), 0) << "no whole page";
  for (int i = 0; i < 3; ++i) room.append("gate", static_cast<float>(i), 3, 3);
  EXPECT_EQ(look("gate", {0, 3}), (WindowTokens{9, 0, 0}));
  EXPECT_EQ(room.book.kept(), 0);
  EXPECT_EQ(shelf->lines(), (Lines{"gate forgotten 2-3: 9"}));
  room.append("gate", 7, 3, 3);
  EXPECT_EQ(look("gate", {2, 4}), (WindowTokens{9, 0, 0}));
  shelf->clear();
  room.desk.close("gate");
  EXPECT_TRUE(shelf->lines().empty());
  EXPECT_TRUE(room.is_empty());
}

TEST_F(Budget, ALowerOneHoldsAtOnceAndAHigherOneGrows) {
  room.desk.leave_to(shelf);
  open("gate");
  for (int i = 0; i < 8; ++i) room.append("gate", static_cast<float>(i));
  EXPECT_EQ(look("gate", {0, 8}), (WindowTokens{16, 0, 0}));
  EXPECT_EQ(room.book.kept(), 4);
  room.desk.set_budget("gate", 12);
  EXPECT_EQ(shelf->lines(), (Lines{"gate forgotten 0-8: 16"}));
  EXPECT_EQ(room.book.kept(), 0);
  EXPECT_EQ(look("gate", {0, 8}), (WindowTokens{8, 0, 0}));
  EXPECT_EQ(room.book.kept(), 2);
  room.desk.set_budget("gate", 1 << 20);
  for (int i = 8; i < 12; ++i) room.append("gate", static_cast<float>(i));
  EXPECT_EQ(room.desk.within_budget("gate", {0, 12}), (PatchRange{4, 12})) << "what is forgotten is gone";
  EXPECT_EQ(look("gate", {4, 12}), (WindowTokens{16, 8, 0}));
  room.desk.close("gate");
}

// What is due next begins where nobody can tell yet.
TEST_F(Budget, NothingIsComputedAheadOfAWindowThatItShortens) {
  open("gate", "all");
  room.desk.set_budget("gate", 12);
  for (int i = 0; i < 8; ++i) room.append("gate", static_cast<float>(i));
  room.desk.expect("gate", 0, room.now);
  EXPECT_TRUE(room.is_empty());
  EXPECT_FALSE(room.desk.due());
  room.desk.expect("gate", 2, room.now);
  EXPECT_FALSE(room.is_empty()) << "that is as much as there is room for";
  room.append("gate", 8);
  room.desk.expect("gate", 2, room.now);
  EXPECT_TRUE(room.is_empty()) << "and what was begun goes";
  room.desk.close("gate");
}

TEST(Reserve, IsForTheTextsOfTheCameraWithTheMost) {
  Room room(200, {}, 4);
  const auto brief = room.question("Is there a car?", 1), lengthy = room.question("Is there a car?", 40);
  const std::int64_t prompt = room.book.pages_for(room.prompts.before());
  const auto pages_of = [&](const CompiledQuestionPtr& question) {
    return room.book.pages_for(static_cast<std::int64_t>(question->tokens.size()) + question->max_tokens);
  };
  EXPECT_EQ(room.book.reserve(), 0);
  EXPECT_EQ(room.desk.most_kept(), 800);
  room.open("gate", 2, "none");
  room.open("yard", 2, "none");
  room.ask("gate", {0, 2}, {brief, brief});
  EXPECT_EQ(room.book.reserve(), prompt + 2 * pages_of(brief));
  room.ask("yard", {0, 2}, {lengthy, brief, brief});
  EXPECT_EQ(room.book.reserve(), prompt + 2 * pages_of(brief) + pages_of(lengthy));
  EXPECT_EQ(room.desk.most_kept(), 800 - 4 * room.book.reserve());
  room.ask("gate", {0, 2}, {brief});
  room.desk.close("yard");
  EXPECT_EQ(room.book.reserve(), prompt + pages_of(brief)) << "what its last window was asked";
  room.desk.close("gate");
  EXPECT_EQ(room.book.reserve(), 0);
}

// Others ask little, and could fill the cache; the long text of one finds room all the same.
TEST(Reserve, StreamsNeverTakeIt) {
  Room room(40, {}, 4);
  const auto shelf = std::make_shared<Shelf>(false);
  room.desk.leave_to(shelf);
  const auto brief = room.question("Car?", 1), lengthy = room.question("Is there a car?", 40);
  const auto look = [&](const std::string& camera, const CompiledQuestionPtr& question) {
    const WindowId id = room.ask(camera, {0, 16}, {question});
    room.run();
    EXPECT_NE(room.answered(id), nullptr) << camera;
    room.desk.done(id);
    EXPECT_GE(room.book.free_pages(), room.book.reserve()) << camera;
    EXPECT_LE(room.book.kept(), room.book.pages() - room.book.reserve()) << camera;
    return room.answered(id)->tokens;
  };
  for (const std::string camera : {"gate", "b", "c", "d"}) room.open(camera, 16, "none");
  look("gate", lengthy);
  for (const std::string camera : {"b", "c", "d"}) look(camera, brief);
  EXPECT_TRUE(room.desk.stream("gate").keeps_pages());
  EXPECT_GT(room.book.events().not_kept, 0U) << "who came last keeps nothing";
  EXPECT_EQ(shelf->lines(), (Lines{"c evicted 0-16: 32", "d evicted 0-16: 32"}));
  shelf->clear();
  const std::int64_t kept = room.book.kept();
  EXPECT_EQ(look("gate", lengthy), (WindowTokens{32, 32, 0}));
  EXPECT_EQ(room.book.kept(), kept) << "nobody gave anything for it";
  EXPECT_TRUE(shelf->lines().empty());
  for (const std::string camera : {"gate", "b", "c", "d"}) room.desk.close(camera);
}

TEST_F(Budget, WhatLeavesAStreamIsOfferedBeforeItsPagesAreFree) {
  room.desk.leave_to(shelf);
  open("gate");
  for (int i = 0; i < 8; ++i) room.append("gate", static_cast<float>(i));
  look("gate", {0, 8});
  EXPECT_TRUE(shelf->lines().empty());
  room.desk.slide("gate", 3);
  ASSERT_EQ(shelf->lines(), (Lines{"gate slid 0-3: 6"}));
  const std::int64_t free = room.book.free_pages();
  // As long as it is held, nobody gets its pages.
  shelf->clear();
  EXPECT_EQ(room.book.free_pages(), free + 1) << "the other page has tokens of the stream, too";
  room.append("gate", 8);
  look("gate", {3, 9});
  room.desk.shorten("gate", 5);
  room.desk.slide("gate", 6);
  EXPECT_EQ(shelf->lines(), (Lines{"gate forgotten 3-5: 4", "gate slid 5-6: 2"}));
  shelf->clear();
  room.desk.follow("gate", make_refresh("none"));
  EXPECT_EQ(shelf->lines(), (Lines{"gate evicted 6-9: 6"})) << "another policy begins anew";
  look("gate", {6, 9});
  shelf->clear();
  room.desk.close("gate");
  EXPECT_EQ(shelf->lines(), (Lines{"gate closed 6-9: 6"}));
  EXPECT_FALSE(room.is_empty());
  shelf->clear();
  EXPECT_TRUE(room.is_empty());
}

TEST_F(Budget, WhatNoStreamKeepsIsNotOffered) {
  room.desk.leave_to(shelf);
  open("whole", "all");
  for (int i = 0; i < 8; ++i) room.append("whole", static_cast<float>(i));
  look("whole", {0, 8});
  room.desk.slide("whole", 4);
  room.desk.close("whole");
  EXPECT_TRUE(shelf->lines().empty());
}

// What the tower has made of them is worth something by itself, once.
TEST_F(Budget, PatchesWithoutKeysAreOfferedToWhoWantsThem) {
  const auto all = std::make_shared<Shelf>(true, true);
  room.desk.leave_to(all);
  open("whole", "all");
  for (int i = 0; i < 8; ++i) room.append("whole", static_cast<float>(i));
  look("whole", {0, 8});
  room.desk.slide("whole", 3);
  room.desk.shorten("whole", 4);
  room.desk.close("whole");
  EXPECT_EQ(all->lines(), (Lines{"whole slid 0-3: 0", "whole forgotten 3-4: 0", "whole closed 4-8: 0"}));
  all->clear();
  open("gate");
  for (int i = 0; i < 8; ++i) room.append("gate", static_cast<float>(i));
  look("gate", {0, 6});
  room.desk.follow("gate", make_refresh("none"));
  EXPECT_EQ(all->lines(), (Lines{"gate evicted 0-6: 12"}));
  room.desk.slide("gate", 4);
  look("gate", {4, 6});
  room.desk.close("gate");
  EXPECT_EQ(all->lines(), (Lines{"gate evicted 0-6: 12", "gate closed 4-6: 4", "gate closed 6-8: 0"}))
      << "without keys, those alone that were never offered";
}

// So that whoever keeps them can place them again, and say when they were seen.
TEST_F(Budget, WhatLeavesTellsWhereAndWhenItWas) {
  room.desk.leave_to(shelf);
  for (const std::string camera : {"gate", "yard"}) {
    open(camera);
    for (int i = 0; i < 3; ++i) {
      // A gap of time between the second and the third.
      const model::VisualTokensPtr patch = patch_of(static_cast<float>(i), 1, 2, i < 2 ? i : 9);
      room.desk.append(camera, patch, base::Clock::WallTime(std::chrono::seconds(1000 + i)));
    }
    look(camera, {0, 3});
    room.desk.close(camera);
  }
  ASSERT_EQ(shelf->held().size(), 2U);
  const LeavingTokens& tokens = shelf->held().front();
  ASSERT_EQ(tokens.patches.size(), 3U);
  const auto before = static_cast<std::int32_t>(room.prompts.before());
  EXPECT_EQ(tokens.patches[0].at, (model::Position{before, before, before}));
  EXPECT_GT(tokens.patches[1].at.t, before);
  EXPECT_EQ(tokens.patches[2].at.t - before, 9 * (tokens.patches[1].at.t - before));
  EXPECT_EQ(tokens.patches[2].at.h, before) << "time turns one axis";
  EXPECT_EQ(tokens.patches[2].number, 2);
  EXPECT_EQ(tokens.patches[2].tokens->count(), 2);
  EXPECT_EQ(tokens.patches[2].captured, base::Clock::WallTime(std::chrono::seconds(1002)));
  EXPECT_NE(tokens.run, shelf->held().back().run) << "positions of two streams are not comparable";
}

// What a pass left half done is no key of anything.
TEST_F(Budget, WhatWasNotComputedToItsEndIsNotOffered) {
  room.desk.leave_to(shelf);
  room.desk.open("gate", make_refresh("first-k", {.share = 1}));
  for (int i = 0; i < 8; ++i) room.append("gate", static_cast<float>(i));
  room.passes.before = [](const run::Pass&) { throw std::runtime_error("no"); };
  WindowId id = room.ask("gate", {0, 4}, {question});
  room.run();
  ASSERT_EQ(room.news.failed.size(), 1U);
  EXPECT_TRUE(shelf->lines().empty());
  room.passes.before = nullptr;
  look("gate", {0, 4});
  EXPECT_EQ(room.book.kept(), 2);
  // Those that were there are computed anew, and are lost with the window.
  room.passes.before = [](const run::Pass&) { throw std::runtime_error("no"); };
  id = room.ask("gate", {0, 5}, {question});
  room.run();
  ASSERT_EQ(room.news.failed.size(), 2U);
  EXPECT_TRUE(shelf->lines().empty());
  EXPECT_EQ(room.book.kept(), 0);
  room.desk.close("gate");
  EXPECT_TRUE(shelf->lines().empty());
  EXPECT_TRUE(room.is_empty());
}

// Whoever copies what left has the time that he needs: a window waits for the room, and gets it.
TEST(PageSink, AWindowThatWaitsGetsTheRoomThatItLetsGo) {
  Room room(24, {}, 4);
  const auto shelf = std::make_shared<Shelf>();
  room.desk.leave_to(shelf);
  const auto question = room.question("Is there a car?", 1);
  room.open("gate", 16, "none");
  room.open("yard", 22, "none");
  const WindowId first = room.ask("gate", {0, 16}, {question});
  room.run();
  ASSERT_NE(room.answered(first), nullptr);
  room.desk.done(first);
  const WindowId second = room.ask("yard", {0, 22}, {question});
  room.desk.work({room.now});
  room.desk.work({room.now});
  room.take_news();
  ASSERT_EQ(room.answered(second), nullptr) << "the shelf has its room";
  ASSERT_EQ(shelf->lines(), (Lines{"gate evicted 0-16: 32"}));
  EXPECT_EQ(room.desk.waiting(), 1U);
  EXPECT_EQ(room.desk.due(), std::nullopt);
  shelf->clear();
  room.desk.expire(room.now);
  room.run();
  EXPECT_NE(room.answered(second), nullptr);
  room.desk.close("gate");
  room.desk.close("yard");
}

}  // namespace
}  // namespace vigil::stream
