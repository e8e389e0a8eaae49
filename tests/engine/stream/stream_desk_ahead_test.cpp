// Windows that are computed before anybody asks about them.
#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using std::chrono::seconds;
using testing::Room;

/// Expects a window from a patch on, and computes what there is of it.
void expect(Room& room, const std::string& camera, std::int64_t first, int due = 0) {
  room.desk.expect(camera, first, room.now + seconds(due));
  room.run();
}

/// Rows that a window takes from here on, with the first token of one question; its answers are right.
std::int64_t rows_of_asking(Room& room, const std::string& camera, PatchRange range,
                            const CompiledQuestionPtr& question) {
  const std::int64_t before = room.passes.rows;
  const WindowId id = room.ask(camera, range, {question});
  room.run();
  EXPECT_NE(room.answered(id), nullptr);
  const std::int64_t rows = room.passes.rows - before - static_cast<std::int64_t>(question->tokens.size());
  EXPECT_TRUE(room.desk.explain(id, 0));
  room.run();
  EXPECT_EQ(room.told(id, 0)->answer.tokens, room.expected(camera, range, question));
  return rows;
}

TEST(StreamDeskAheadTest, WhatThereIsOfAWindowIsComputedBeforeItIsAsked) {
  for (const bool asks_at_once : {true, false}) {
    Room room(64, {.rows = 16, .asks_at_once = asks_at_once});
    room.open("gate", 3);
    const auto question = room.question("Is there a car?", 8);
    expect(room, "gate", 0);
    EXPECT_EQ(room.passes.rows, room.prompts.before() + 6);
    EXPECT_TRUE(room.news.empty()) << "nobody asked";
    room.append("gate", 10);
    expect(room, "gate", 0);
    EXPECT_EQ(room.passes.rows, room.prompts.before() + 8);
    room.append("gate", 11);
    EXPECT_EQ(rows_of_asking(room, "gate", {0, 5}, question), 2);
    // The next one begins with the second patch.
    room.desk.slide("gate", 1);
    expect(room, "gate", 1);
    EXPECT_EQ(rows_of_asking(room, "gate", {1, 5}, question), 0) << "its last patch was there, too";
    EXPECT_TRUE(room.is_empty());
  }
}

TEST(StreamDeskAheadTest, TwentyStridesEqualFreshWindows) {
  Room room(64, {.rows = 16});
  room.open("gate", 4);
  const auto question = room.question("Is there a car?", 8);
  for (std::int64_t stride = 0; stride < 20; ++stride) {
    const auto rows = rows_of_asking(room, "gate", {stride, stride + 4}, question);
    if (stride > 0) {
      EXPECT_EQ(rows, 2);
    }
    room.desk.slide("gate", stride + 1);
    expect(room, "gate", stride + 1);
    room.append("gate", 100.0F + static_cast<float>(stride));
  }
  room.desk.close("gate");
  EXPECT_TRUE(room.is_empty());
}

TEST(StreamDeskAheadTest, WhatWasExpectedWronglyIsComputedAnew) {
  Room room;
  const auto question = room.question("Is there a car?", 8);
  const auto whole = [&](std::int64_t patches) { return room.prompts.before() + 2 * patches; };
  room.open("gate", 5);
  expect(room, "gate", 1);
  EXPECT_EQ(rows_of_asking(room, "gate", {0, 5}, question), whole(5)) << "it began earlier";
  expect(room, "gate", 1);
  EXPECT_EQ(rows_of_asking(room, "gate", {2, 5}, question), whole(3)) << "it began later";
  expect(room, "gate", 1);
  EXPECT_EQ(rows_of_asking(room, "gate", {1, 3}, question), whole(2)) << "it ended sooner";
  expect(room, "gate", 1);
  room.desk.slide("gate", 2);
  EXPECT_TRUE(room.is_empty()) << "no window will begin there";
  EXPECT_EQ(rows_of_asking(room, "gate", {2, 5}, question), whole(3));
  room.append("gate", 7, 2, 3);
  expect(room, "gate", 3);
  EXPECT_TRUE(room.is_empty()) << "of two sizes";
  EXPECT_FALSE(room.desk.due());
  expect(room, "gate", 5);
  EXPECT_EQ(rows_of_asking(room, "gate", {5, 6}, question), 0);
  EXPECT_TRUE(room.is_empty());
}

TEST(StreamDeskAheadTest, ItComesAfterAllThatWasAsked) {
  Room room(64, {.rows = 8, .windows = 2});
  for (const char* camera : {"a", "b", "c"}) room.open(camera, 4);
  room.desk.expect("a", 0, room.now + seconds(3));
  room.desk.expect("b", 0, room.now + seconds(2));
  EXPECT_EQ(room.desk.due(), room.now + seconds(2));
  const WindowId asked = room.ask("c", {0, 4}, {room.question("Fire?", 1)}, 20);
  EXPECT_EQ(room.desk.due(), room.now + seconds(20)) << "what is asked comes first, and when it is due";
  std::int64_t rows = room.prompts.before() + 8;
  while (!room.answered(asked)) {
    room.desk.work({room.now});
    room.take_news();
  }
  rows += static_cast<std::int64_t>(room.question("Fire?", 1)->tokens.size());
  EXPECT_EQ(room.passes.rows, rows) << "and joins no pass of it";
  room.run();
  EXPECT_EQ(room.passes.rows, rows + 2 * (room.prompts.before() + 8));
}

TEST(StreamDeskAheadTest, ItFillsThePassesOfTextsUnlessOthersWorkIsDueBeforeIt) {
  Room room(64, {.rows = 64, .rows_filled = 64});
  room.open("a", 2);
  room.open("b", 4);
  const WindowId told = room.ask("a", {0, 2}, {room.lasting("a", {0, 2})}, 1);
  room.run();
  ASSERT_TRUE(room.desk.explain(told, 0));
  room.desk.expect("b", 0, room.now + seconds(9));
  std::int64_t before = room.passes.rows;
  room.desk.work({room.now, room.now + seconds(8)});
  EXPECT_EQ(room.passes.rows - before, 1) << "the text alone";
  before = room.passes.rows;
  room.desk.work({room.now});
  EXPECT_EQ(room.passes.rows - before, 1 + room.prompts.before() + 8) << "nobody else waits";
  room.desk.close("b");
}

TEST(StreamDeskAheadTest, FewRowsWaitForMore) {
  Room room(64, {.rows = 64, .rows_ahead = 40});
  room.open("a", 4);
  room.open("b", 4);
  const std::int64_t one = room.prompts.before() + 8;
  ASSERT_LT(one, 40);
  ASSERT_GE(2 * one, 40);
  expect(room, "a", 0);
  EXPECT_EQ(room.passes.rows, 0);
  expect(room, "b", 0);
  EXPECT_EQ(room.passes.rows, 2 * one) << "in one pass";
  EXPECT_EQ(room.passes.passes, 1U);
}

TEST(StreamDeskAheadTest, ItsRoomIsEverybodys) {
  const auto text = [](Room& room) { return room.question("Describe it at length, please: 100", 24); };
  Room measure;
  const std::vector<CompiledQuestionPtr> one{text(measure)};
  const std::int64_t window = measure.desk.pages_for(12, one);
  Room room(window + 1);
  const auto question = text(room);
  for (const char* camera : {"a", "b", "c"}) room.open(camera, 6);
  expect(room, "a", 0, 9);
  EXPECT_FALSE(room.is_empty());
  EXPECT_NEAR(room.desk.usage(), 0, 1e-9) << "anybody may have it";
  // Another camera's window needs nearly all.
  WindowId id = room.ask("b", {0, 6}, {question});
  room.run();
  ASSERT_NE(room.answered(id), nullptr);
  EXPECT_EQ(room.answered(id)->answers[0].tokens.at(0), room.expected("b", {0, 6}, question).at(0));
  room.desk.done(id);
  EXPECT_TRUE(room.is_empty()) << "what was computed for a is gone";
  id = room.ask("a", {0, 6}, {question});
  room.run();
  EXPECT_EQ(room.answered(id)->answers[0].tokens.at(0), room.expected("a", {0, 6}, question).at(0));
  // While a text has most of the room, what is ahead takes what is left; a window that waits comes first.
  const std::int64_t left = room.book.free_pages();
  expect(room, "b", 0);
  expect(room, "c", 5);
  EXPECT_LE(room.book.free_pages(), left);
  const WindowId waits = room.ask("b", {0, 6}, {question}, 1);
  room.run();
  EXPECT_EQ(room.answered(waits), nullptr);
  const std::int64_t kept = room.book.free_pages();
  expect(room, "c", 0);
  EXPECT_EQ(room.book.free_pages(), kept) << "nothing is begun while somebody waits for room";
  room.desk.done(id);
  room.run();
  EXPECT_NE(room.answered(waits), nullptr);
  room.desk.done(waits);
  for (const char* camera : {"a", "b", "c"}) room.desk.close(camera);
  EXPECT_TRUE(room.is_empty());
}

TEST(StreamDeskAheadTest, OneThatWaitsForTheRestOfItsRoomHoldsUpNobody) {
  const auto text = [](Room& room) { return room.question("Describe it at length, please: 100", 24); };
  Room measure;
  const std::vector<CompiledQuestionPtr> two{text(measure), text(measure)};
  const std::int64_t window = measure.desk.pages_for(12, two);
  // Both have begun, and neither has room for its end.
  Room room(window);
  const auto question = text(room);
  for (const char* camera : {"a", "b"}) {
    room.open(camera, 3);
    expect(room, camera, 0);
    for (int i = 3; i < 6; ++i) room.append(camera, static_cast<float>(i));
  }
  const WindowId late = room.ask("a", {0, 6}, {question, question}, 5);
  const WindowId soon = room.ask("b", {0, 6}, {question, question}, 1);
  room.run();
  ASSERT_NE(room.answered(soon), nullptr);
  EXPECT_EQ(room.answered(late), nullptr);
  room.desk.done(soon);
  room.run();
  ASSERT_NE(room.answered(late), nullptr);
  EXPECT_EQ(room.answered(late)->answers[1].tokens.at(0), room.expected("a", {0, 6}, question).at(0));
  room.desk.done(late);
  EXPECT_TRUE(room.is_empty());
}

TEST(StreamDeskAheadTest, WhoOvertakesAWindowThatHadBegunBeginsAnew) {
  Room room;
  room.open("gate", 4);
  const auto question = room.question("Is there a car?", 8);
  expect(room, "gate", 0);
  room.desk.allow(0);
  room.ask("gate", {0, 4}, {question});
  room.append("gate", 9);
  room.desk.slide("gate", 1);
  expect(room, "gate", 1);
  const WindowId next = room.ask("gate", {1, 5}, {question}, 0, true);
  room.desk.allow(9);
  room.run();
  EXPECT_EQ(room.news.overtaken.size(), 1U);
  ASSERT_NE(room.answered(next), nullptr);
  EXPECT_EQ(room.answered(next)->answers[0].tokens.at(0), room.expected("gate", {1, 5}, question).at(0));
  room.desk.done(next);
  EXPECT_TRUE(room.is_empty());
}

TEST(StreamDeskAheadTest, WhatFailsOfItIsToldWhenItIsAsked) {
  for (const bool out_of_memory : {false, true}) {
    Room room(64, {.rows = 64});
    room.open("gate", 4);
    room.open("other", 4);
    bool fails = true;
    room.passes.before = [&](const run::Pass& pass) {
      for (const auto& rows : pass.rows)
        if (fails && rows.tokens.empty() && rows.embedded.row<float>(0)[0] == 3) {
          if (out_of_memory) throw std::bad_alloc();
          throw std::runtime_error("a bad frame");
        }
    };
    const auto question = room.question("Is there a car?", 8);
    expect(room, "gate", 0);
    EXPECT_TRUE(room.news.failed.empty() && room.news.told.empty());
    EXPECT_TRUE(room.is_empty());
    expect(room, "gate", 0);
    const WindowId good = room.ask("other", {0, 3}, {question});
    room.run();
    EXPECT_NE(room.answered(good), nullptr);
    const WindowId bad = room.ask("gate", {0, 4}, {question});
    room.run();
    ASSERT_EQ(room.news.failed.size(), 1U);
    EXPECT_EQ(room.news.failed[0].window, bad);
    fails = false;
    expect(room, "gate", 0);
    rows_of_asking(room, "gate", {0, 4}, question);
    room.desk.done(good);
    EXPECT_TRUE(room.is_empty());
  }
}

TEST(StreamDeskAheadTest, AWindowWithoutQuestionsIsAnsweredWithoutAnotherPass) {
  Room room;
  room.open("gate", 3);
  expect(room, "gate", 0);
  const std::uint64_t passes = room.passes.passes;
  const WindowId id = room.ask("gate", {0, 3}, {});
  room.run();
  EXPECT_NE(room.answered(id), nullptr);
  EXPECT_EQ(room.passes.passes, passes);
  EXPECT_TRUE(room.is_empty());
  room.append("gate", 5);
  rows_of_asking(room, "gate", {1, 4}, room.question("Is there a car?", 8));
}

// What is kept between windows is nearly all of the next one already.
TEST(StreamDeskAheadTest, NothingIsBegunWhereKeysAreKept) {
  Room room;
  room.open("gate", 4, "none");
  expect(room, "gate", 0);
  EXPECT_EQ(room.passes.rows, 0);
  EXPECT_TRUE(room.is_empty());
  EXPECT_THROW(room.desk.expect("nobody", 0, room.now), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::stream
