// What stays as it was: a window that is explained for strides on end, and a stream of which a pass failed.
#include <cstdint>
#include <memory>
#include <new>
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
    EXPECT_EQ(with.copied > without.copied, name != "all" && name != "none");
  }
}

/// A window that was asked before, and whose first asking failed in its pass of this number, if it has as
/// many.
struct Again {
  bool failed = false;
  std::int64_t kept = 0;
  std::vector<std::int32_t> text, fresh;
};

Again ask_again(const RefreshPolicyPtr& policy, int fails_at, bool is_memory) {
  // Several passes a window.
  Room room(128, {.rows = 9});
  room.desk.open("gate", policy);
  for (int i = 0; i < 4; ++i) room.append("gate", static_cast<float>(i));
  const auto question = room.question("What happens?", 10);
  const WindowId before = room.ask("gate", {0, 4}, {question});
  room.run();
  room.append("gate", 60);
  room.desk.slide("gate", 1);
  Again result;
  int passes = 0;
  room.passes.before = [&](const run::Pass&) {
    if (passes++ < fails_at) return;
    result.failed = true;
    if (is_memory) throw std::bad_alloc();
    throw std::runtime_error("a bad pass");
  };
  const WindowId first = room.ask("gate", {1, 5}, {question});
  room.run();
  EXPECT_EQ(room.answered(first) == nullptr, result.failed);
  room.passes.before = {};
  const WindowId again = room.ask("gate", {1, 5}, {question});
  room.run();
  EXPECT_TRUE(room.desk.explain(again, 0));
  room.run();
  result.kept = room.answered(again)->tokens.kept;
  result.text = room.told(again, 0)->answer.tokens;
  result.fresh = room.expected("gate", {1, 5}, question);
  for (const WindowId& id : {before, first, again}) room.desk.done(id);
  room.desk.close("gate");
  EXPECT_TRUE(room.is_empty());
  return result;
}

// A pass that fails takes what its stream keeps with it, and the next window is computed whole; one of
// questions alone leaves the stream as it was. Nothing that is half computed is ever seen.
TEST(StreamDeskStaysTest, AfterAPassThatFailedTheStreamIsAsItWasOrAsAFreshOne) {
  for (const std::string name : {"all", "none", "every second"}) {
    const RefreshPolicyPtr policy =
        name == "every second" ? std::make_shared<EverySecond>() : make_refresh(name);
    const Again unharmed = ask_again(policy, 1000, false);
    ASSERT_FALSE(unharmed.failed);
    for (const bool is_memory : {false, true}) {
      int begun_anew = 0;
      for (int fails_at = 0;; ++fails_at) {
        SCOPED_TRACE(name + " at " + std::to_string(fails_at));
        const Again again = ask_again(policy, fails_at, is_memory);
        if (!again.failed) break;
        if (again.kept == 0) {
          EXPECT_EQ(again.text, again.fresh);
          ++begun_anew;
        } else {
          EXPECT_EQ(again.kept, unharmed.kept) << "all of it";
          EXPECT_EQ(again.text, unharmed.text);
        }
      }
      EXPECT_GT(begun_anew, 1);
    }
  }
}

}  // namespace
}  // namespace vigil::stream
