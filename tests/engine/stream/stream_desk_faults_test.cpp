// What becomes of the desk's windows and texts when passes fail, memory is short, or somebody gives them up.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/vision_encoder.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using std::chrono::seconds;
using testing::expected_tokens;
using testing::patch_of;
using testing::reason_of;
using testing::Room;

TEST(StreamDeskTest, WhatHasNoMemoryIsTriedInSmallerPasses) {
  Room room(256, {.rows = 512});
  room.passes.before = [](const run::Pass& pass) {
    if (pass.positions.size() > 70) throw std::bad_alloc();
  };
  for (const char* camera : {"a", "b", "c"}) room.open(camera, 10);
  const auto question = room.question();
  std::vector<WindowId> ids;
  for (const char* camera : {"a", "b", "c"}) ids.push_back(room.ask(camera, {0, 10}, {question, question}));
  room.run();
  for (const WindowId& id : ids) {
    ASSERT_NE(room.answered(id), nullptr);
    EXPECT_EQ(room.answered(id)->answers[1].tokens.at(0), room.expected(id.camera, {0, 10}, question).at(0));
  }
  ASSERT_TRUE(room.news.pressed);
  EXPECT_EQ(room.news.pressed->reason, "std::bad_alloc");
  EXPECT_LE(room.news.pressed->rows, 70);
  EXPECT_TRUE(room.news.failed.empty());
}

TEST(StreamDeskTest, WhatHasNoMemoryHoweverSmallItsPassFails) {
  // A question cannot be split, and texts are rows, too.
  Room room(256, {.rows = 512});
  const auto long_question = room.question(std::string(200, '?') + " Is there a car?");
  ASSERT_GT(long_question->tokens.size(), 70U);
  room.passes.before = [](const run::Pass& pass) {
    if (pass.positions.size() > 70) throw std::bad_alloc();
  };
  room.open("a", 2);
  room.open("b", 2);
  const WindowId bad = room.ask("a", {0, 2}, {long_question});
  const WindowId good = room.ask("b", {0, 2}, {room.question()});
  room.run();
  ASSERT_EQ(room.news.failed.size(), 1U);
  EXPECT_EQ(room.news.failed[0].window, bad);
  EXPECT_TRUE(room.news.failed[0].out_of_memory);
  EXPECT_NE(room.answered(good), nullptr);
}

TEST(StreamDeskTest, TextsThatHaveNoMemoryTogetherHaveItInTurns) {
  Room room(512, {.rows = 512});
  room.open("gate", 2);
  const auto lasting = room.lasting("gate", {0, 2});
  const WindowId id = room.ask("gate", {0, 2}, std::vector<CompiledQuestionPtr>(12, lasting));
  room.run();
  room.passes.before = [](const run::Pass& pass) {
    if (pass.positions.size() > 3) throw std::bad_alloc();
  };
  for (std::size_t i = 0; i < 12; ++i) ASSERT_TRUE(room.desk.explain(id, i));
  room.run();
  for (std::size_t i = 0; i < 12; ++i) {
    ASSERT_NE(room.told(id, i), nullptr);
    EXPECT_EQ(room.told(id, i)->answer.tokens, room.expected("gate", {0, 2}, lasting));
  }
  EXPECT_TRUE(room.news.pressed);
}

TEST(StreamDeskTest, AnErrorOfWhatComesOutConcernsTheOneWhoseItIs) {
  Room room;
  for (const char* camera : {"a", "b", "c"}) room.open(camera, 2);
  const auto question = room.question();
  std::vector<WindowId> ids;
  for (const char* camera : {"a", "b", "c"}) ids.push_back(room.ask(camera, {0, 2}, {question, question}));
  room.passes.logits_before = [calls = 0]() mutable {
    if (++calls == 3) throw std::bad_alloc();
  };
  room.run();
  ASSERT_EQ(room.news.failed.size(), 1U);
  EXPECT_EQ(room.news.failed[0].window, ids[1]);
  EXPECT_TRUE(room.news.failed[0].out_of_memory);
  EXPECT_NE(room.answered(ids[0]), nullptr);
  EXPECT_NE(room.answered(ids[2]), nullptr);
}

TEST(StreamDeskTest, AWindowThatGoesWhileItsQuestionsWaitLeavesTheNextOneAlone) {
  Room room(64, {.rows = 8, .asks_at_once = false});
  room.open("gate", 8, "none");
  const auto question = room.question();
  const WindowId first = room.ask("gate", {0, 2}, {question, question, question}, 1);
  const WindowId second = room.ask("gate", {1, 6}, {question}, 2);
  // Until the first one's rows are there, and the second one has its place.
  for (int i = 0; i < 100 && room.desk.placed() < 2; ++i) room.desk.work({room.now});
  ASSERT_EQ(room.desk.placed(), 2U);
  room.desk.done(first);
  room.run();
  ASSERT_NE(room.answered(second), nullptr);
  const WindowId third = room.ask("gate", {2, 7}, {question}, 3);
  room.run();
  EXPECT_NE(room.answered(third), nullptr);
}

TEST(StreamDeskTest, WhatFailsAloneTakesNobodyWithIt) {
  Room room;
  room.open("good", 2);
  room.open("bad", 2);
  room.desk.close("bad");
  room.desk.open("bad", make_refresh("all"));
  room.append("bad", 666);
  room.passes.before = [](const run::Pass& pass) {
    for (const auto& rows : pass.rows)
      if (rows.tokens.empty() && rows.embedded.row<float>(0)[0] == 666)
        throw std::runtime_error("a bad frame");
  };
  const auto question = room.question("What happens?", 10);
  const WindowId text = room.ask("good", {0, 2}, {question});
  room.run();
  ASSERT_TRUE(room.desk.explain(text, 0));
  const WindowId good = room.ask("good", {0, 2}, {question}, 5);
  const WindowId bad = room.ask("bad", {0, 1}, {question});
  room.run();
  EXPECT_NE(room.answered(good), nullptr);
  EXPECT_EQ(room.told(text, 0)->answer.tokens, room.expected("good", {0, 2}, question));
  ASSERT_EQ(room.news.failed.size(), 1U);
  EXPECT_EQ(room.news.failed[0].window, bad);
  EXPECT_EQ(room.news.failed[0].reason, "a bad frame");
  EXPECT_FALSE(room.news.failed[0].out_of_memory);
}

// The device reads them when it comes to it, after the call that submitted the pass.
TEST(StreamDeskTest, EmbeddingsStayUntilThePassesThatReadThemHaveEnded) {
  const auto answer = [](bool waits) {
    Room room;
    room.open("gate", 3, "none");
    // Nothing comes out of a window without questions.
    room.ask("gate", {0, 2}, {});
    room.run();
    if (waits) room.passes.settle();
    room.kept.clear();
    room.desk.slide("gate", 1);
    // It sees keys of the second patch, which saw the first.
    const WindowId id = room.ask("gate", {1, 3}, {room.question("Describe it at length.", 24)});
    room.run();
    EXPECT_TRUE(room.desk.explain(id, 0));
    room.run();
    return room.told(id, 0)->answer.tokens;
  };
  EXPECT_EQ(answer(false), answer(true));
}

TEST(StreamDeskTest, ADeviceThatIsLostIsToldAtOnceInEveryState) {
  for (int passes = 0; passes < 12; ++passes) {
    Room room(64, {.rows = 8});
    room.open("gate", 3);
    const WindowId id = room.ask("gate", {0, 3}, {room.question("Describe it.", 12)});
    int left = passes;
    room.passes.before = [&](const run::Pass&) {
      if (left-- == 0) throw run::DeviceLost("the GPU is gone");
    };
    const auto go_on = [&] {
      while (room.desk.due()) room.desk.work({room.now});
      if (room.desk.explain(id, 0))
        while (room.desk.due()) room.desk.work({room.now});
    };
    if (static_cast<std::uint64_t>(passes) < 6) {
      EXPECT_THROW(go_on(), run::DeviceLost) << passes;
    } else {
      try {
        go_on();
      } catch (const run::DeviceLost&) {
        continue;
      }
    }
  }
}

// At each step of its way a window may be given up; nothing of it stays.
TEST(StreamDeskTest, MayBeGivenUpAtEveryStep) {
  for (const std::string_view policy : {"all", "none"}) {
    for (const int how : {0, 1, 2}) {
      for (int steps = 0; steps < 30; ++steps) {
        Room room(64, {.rows = 5});
        room.open("gate", 3, policy);
        room.open("other", 3, policy);
        const auto question = room.question("What happens?", 10);
        const WindowId id = room.ask("gate", {0, 3}, {question, question});
        const WindowId other = room.ask("other", {0, 3}, {question}, 1);
        for (int step = 0; step < steps && room.desk.due(); ++step) {
          room.desk.work({room.now});
          room.take_news();
          if (room.answered(id)) room.desk.explain(id, 0);
        }
        if (how == 0) {
          room.desk.done(id);
        } else if (how == 1) {
          room.desk.close("gate");
          room.desk.done(id);
        } else {
          room.now += seconds(1000);
          room.desk.expire(room.now);
          room.desk.done(id);
        }
        room.now = {};
        room.run();
        if (how != 2 || steps == 0) {
          EXPECT_NE(room.answered(other), nullptr);
        }
        room.desk.done(other);
        if (room.desk.is_open("gate")) room.desk.close("gate");
        room.desk.close("other");
        ASSERT_TRUE(room.is_empty()) << policy << ' ' << how << ' ' << steps;
      }
    }
  }
}

}  // namespace
}  // namespace vigil::stream
