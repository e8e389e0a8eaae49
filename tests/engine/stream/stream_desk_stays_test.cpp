// What stays as it was: a window that is explained for strides on end, and a stream of which a pass failed.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using testing::EverySecond;
using testing::Room;

/// A text over windows of four patches, and what comes of the windows after it, each a patch later.
struct Strides {
  std::vector<std::int32_t> text, expected;
  /// What the windows say, whose texts are short.
  std::vector<std::vector<std::int32_t>> windows;
  /// Of them, those that were answered while the text went on.
  int outlived = 0;
  std::uint64_t copied = 0;
};

Strides stride_on(const RefreshPolicyPtr& policy, bool is_explained) {
  Strides result;
  Room room(256);
  room.desk.open("gate", policy);
  for (int i = 0; i < 4; ++i) room.append("gate", static_cast<float>(i));
  const auto lasting = room.lasting("gate", {0, 4}, 20);
  const WindowId first = room.ask("gate", {0, 4}, {lasting});
  room.run();
  if (is_explained) {
    EXPECT_TRUE(room.desk.explain(first, 0));
  } else {
    room.desk.done(first);
  }
  const auto question = room.question();
  std::vector<WindowId> windows;
  for (std::int64_t next = 1; next < 9; ++next) {
    room.append("gate", 50.0F + static_cast<float>(next));
    room.desk.slide("gate", next);
    const WindowId id = room.ask("gate", {next, next + 4}, {question});
    for (int step = 0; step < 100 && room.answered(id) == nullptr; ++step) {
      room.desk.work({room.now});
      room.take_news();
    }
    EXPECT_NE(room.answered(id), nullptr);
    if (is_explained && room.told(first, 0) == nullptr) ++result.outlived;
    EXPECT_TRUE(room.desk.explain(id, 0));
    windows.push_back(id);
  }
  room.run();
  for (const WindowId& id : windows) result.windows.push_back(room.told(id, 0)->answer.tokens);
  if (is_explained) {
    result.text = room.told(first, 0)->answer.tokens;
    result.expected = room.expected("gate", {0, 4}, lasting);
  }
  result.copied = static_cast<std::uint64_t>(room.passes.copied);
  room.desk.close("gate");
  EXPECT_TRUE(room.is_empty());
  return result;
}

// Pages that it shares with the stream are copied before they are written; nobody's answer knows of another.
TEST(StreamDeskStaysTest, AWindowThatIsExplainedForMoreThanFiveStridesIsAsItWasAsked) {
  for (const std::string name : {"all", "none", "first-k", "topk", "every second"}) {
    SCOPED_TRACE(name);
    const RefreshPolicyPtr policy =
        name == "every second" ? std::make_shared<EverySecond>() : make_refresh(name);
    const Strides with = stride_on(policy, true), without = stride_on(policy, false);
    EXPECT_GT(with.outlived, 5);
    EXPECT_EQ(with.text, with.expected);
    EXPECT_EQ(with.windows, without.windows) << "what comes after it is as if it were not there";
    EXPECT_EQ(with.copied > 0, name == "first-k" || name == "topk" || name == "every second");
    EXPECT_EQ(without.copied, 0U);
  }
}

// What it keeps may be gone then, but nothing that is half computed is ever seen.
TEST(StreamDeskStaysTest, AfterAPassThatFailedTheStreamIsWhatAFreshOneWouldBe) {
  for (const std::string name : {"all", "none", "every second"}) {
    for (const bool is_memory : {false, true}) {
      for (int fails_at = 0; fails_at < 12; ++fails_at) {
        SCOPED_TRACE(name + " at " + std::to_string(fails_at));
        // Several passes a window.
        Room room(128, {.rows = 9});
        const RefreshPolicyPtr policy =
            name == "every second" ? std::make_shared<EverySecond>() : make_refresh(name);
        room.desk.open("gate", policy);
        for (int i = 0; i < 4; ++i) room.append("gate", static_cast<float>(i));
        const auto question = room.question("What happens?", 10);
        room.ask("gate", {0, 4}, {question});
        room.run();
        room.append("gate", 60);
        room.desk.slide("gate", 1);
        int passes = 0;
        bool failed = false;
        room.passes.before = [&](const run::Pass&) {
          if (passes++ < fails_at) return;
          failed = true;
          if (is_memory) throw std::bad_alloc();
          throw std::runtime_error("a bad pass");
        };
        const WindowId bad = room.ask("gate", {1, 5}, {question});
        room.run();
        EXPECT_EQ(room.answered(bad) == nullptr, failed);
        room.passes.before = {};
        // Nothing of it is kept: the next one is computed whole.
        const WindowId next = room.ask("gate", {1, 5}, {question});
        room.run();
        ASSERT_NE(room.answered(next), nullptr);
        if (failed) {
          EXPECT_EQ(room.answered(next)->tokens.kept, 0);
          ASSERT_TRUE(room.desk.explain(next, 0));
          room.run();
          EXPECT_EQ(room.told(next, 0)->answer.tokens, room.expected("gate", {1, 5}, question));
        }
        room.desk.close("gate");
        EXPECT_TRUE(room.is_empty());
      }
    }
  }
}

}  // namespace
}  // namespace vigil::stream
