// The policy that looks at keys before it chooses: what it computes anew, and what becomes of a window, its
// stream and its neighbours when looking fails.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/vision_encoder.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using testing::patch_of;
using testing::Room;
using Ranges = std::vector<kv::TokenRange>;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

TEST(TopKTest, TheFarthestAreTakenOfEqualOnesTheOlder) {
  const std::vector<float> distances{1, 5, 0, 5, 5, 2, 7};
  EXPECT_EQ(farthest(distances, 0), Ranges());
  EXPECT_EQ(farthest(distances, 1), (Ranges{{6, 1}}));
  EXPECT_EQ(farthest(distances, 2), (Ranges{{1, 1}, {6, 1}}));
  EXPECT_EQ(farthest(distances, 3), (Ranges{{1, 1}, {3, 1}, {6, 1}}));
  EXPECT_EQ(farthest(distances, 5), (Ranges{{1, 1}, {3, 4}}));
  EXPECT_EQ(farthest(distances, 7), (Ranges{{0, 7}}));
  EXPECT_EQ(farthest(distances, 9), (Ranges{{0, 7}}));
  EXPECT_EQ(farthest(distances, -1), Ranges());
  EXPECT_EQ(farthest({}, 3), Ranges());
  EXPECT_EQ(farthest(std::vector<float>(4, 0.0F), 2), (Ranges{{0, 2}}));
}

TEST(TopKTest, WhatIsNoNumberIsFarthest) {
  const float most = std::numeric_limits<float>::infinity();
  EXPECT_EQ(farthest(std::vector<float>{3, kNone, 4, kNone, 5}, 3), (Ranges{{1, 1}, {3, 2}}));
  EXPECT_EQ(farthest(std::vector<float>{kNone, 9, most, kNone}, 2), (Ranges{{0, 1}, {2, 1}}));
  EXPECT_EQ(farthest(std::vector<float>(3, kNone), 2), (Ranges{{0, 2}}));
}

TEST(TopKTest, ItsShareIsRoundedUp) {
  const auto ranked = [](double share, std::int64_t tokens) {
    return make_refresh("topk", {.share = share})->ranked(tokens);
  };
  EXPECT_EQ(ranked(0.15, 80), 12);
  EXPECT_EQ(ranked(0.15, 81), 13);
  EXPECT_EQ(ranked(0.15, 1), 1);
  EXPECT_EQ(ranked(0, 80), 0);
  EXPECT_EQ(ranked(1, 80), 80);
  EXPECT_EQ(ranked(0.5, 0), 0);
  EXPECT_EQ(make_refresh("first-k")->ranked(80), std::nullopt);
  EXPECT_TRUE(make_refresh("topk")->keeps_keys());
}

using Place = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

/// What a desk's passes looked at, and which visual tokens they computed, since the last `clear`.
struct Record {
  std::vector<Place> looked_at, computed;
  std::vector<float> distances;

  explicit Record(Room& room) {
    const auto place = [](const model::Position& at) { return Place(at.t, at.h, at.w); };
    room.passes.measured = [this, place](const run::Pass& pass, std::span<float> found) {
      for (const std::int32_t row : pass.outputs)
        looked_at.push_back(place(pass.positions[static_cast<std::size_t>(row)]));
      distances.insert(distances.end(), found.begin(), found.end());
    };
    room.passes.before = [this, place](const run::Pass& pass) {
      std::size_t row = 0;
      for (const run::Pass::Rows& rows : pass.rows)
        for (std::int64_t i = 0; i < rows.count(); ++i, ++row)
          if (rows.tokens.empty()) computed.push_back(place(pass.positions[row]));
    };
  }
  void clear() {
    looked_at.clear();
    computed.clear();
    distances.clear();
  }
};

/// Asks a window of the camera's last `patches`; it has slid there.
WindowId ask_last(Room& room, const std::string& camera, std::int64_t patches,
                  std::vector<CompiledQuestionPtr> questions = {}) {
  const std::int64_t last = room.desk.stream(camera).patches().last;
  room.desk.slide(camera, last - patches);
  return room.ask(camera, {last - patches, last}, std::move(questions));
}

// In small passes and in large ones, while somebody still sees what was there and while nobody does.
TEST(TopKTest, ComputesAnewWhatDiffersMostAndNothingElseThatIsKept) {
  for (const std::int64_t rows : {5, 64})
    for (const bool is_held : {false, true}) {
      Room room(1024, {.rows = rows}, 4);
      Record record(room);
      room.desk.open("gate", make_refresh("topk", {.share = 0.3}));
      const auto question = room.question("Is there a car?", 8);
      int others = 0;
      for (int number = 0; number < 20; ++number) {
        room.append("gate", patch_of(static_cast<float>(number), 1, 2, number < 9 ? number : number + 3));
        if (number < 4 || number % 2 == 1) continue;
        record.clear();
        const WindowId id = ask_last(room, "gate", 5, {question});
        room.run();
        const auto* answered = room.answered(id);
        ASSERT_NE(answered, nullptr);
        if (number == 4) {
          EXPECT_EQ(answered->tokens, (WindowTokens{10, 0, 0, 0}));
          continue;
        }
        EXPECT_EQ(answered->tokens, (WindowTokens{10, 6, 2, 6}));
        ASSERT_EQ(record.distances.size(), 6U);
        EXPECT_TRUE(std::is_sorted(record.looked_at.begin(), record.looked_at.end()));
        // By hand: the two largest, wherever they are.
        std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
          return record.distances[a] > record.distances[b];
        });
        EXPECT_GT(record.distances[order[0]], 0) << "all of them have seen what has left";
        std::set<Place> expected{record.looked_at[order[0]], record.looked_at[order[1]]};
        others += order[0] + order[1] > 1 ? 1 : 0;
        ASSERT_EQ(record.computed.size(), 2U + 4U);
        EXPECT_EQ(std::set<Place>(record.computed.begin(), record.computed.begin() + 2), expected);
        for (std::size_t i = 2; i < record.computed.size(); ++i)
          EXPECT_GT(record.computed[i], record.looked_at.back()) << "what is new";
        if (!is_held) room.desk.done(id);
        room.news = {};
      }
      EXPECT_GT(others, 3) << "else the oldest would do";
      room.desk.close("gate");
      room.now += std::chrono::seconds(100);
      room.run();
      room.now += std::chrono::seconds(100);
      room.run();
      EXPECT_TRUE(room.is_empty());
    }
}

TEST(TopKTest, NoneOfThemAndAllOfThemNeedNoLook) {
  for (const double share : {0.0, 1.0}) {
    Room room;
    Record record(room);
    room.desk.open("gate", make_refresh("topk", {.share = share}));
    for (int number = 0; number < 6; ++number) {
      room.append("gate", static_cast<float>(number));
      if (number < 2) continue;
      record.clear();
      const WindowId id = ask_last(room, "gate", 3);
      room.run();
      ASSERT_NE(room.answered(id), nullptr);
      const std::int64_t kept = number == 2 ? 0 : 4, anew = share > 0 ? kept : 0;
      EXPECT_EQ(room.answered(id)->tokens, (WindowTokens{6, kept, anew, 0}));
      EXPECT_EQ(record.computed.size(), static_cast<std::size_t>(6 - kept + anew));
    }
    EXPECT_EQ(room.passes.probes, 0U);
    room.desk.close("gate");
  }
}

// A window that is asked again, or has only grown, has no key that is stale.
TEST(TopKTest, OfAWindowThatWasNotSlidNothingDiffers) {
  Room room(256);
  Record record(room);
  room.desk.open("gate", make_refresh("topk", {.share = 0.5}));
  for (int number = 0; number < 3; ++number) room.append("gate", static_cast<float>(number));
  const auto question = room.question("Is there a car?", 8);
  for (int again = 0; again < 3; ++again) {
    if (again == 2) room.append("gate", 3);
    const PatchRange range{0, again == 2 ? 4 : 3};
    record.clear();
    const WindowId id = room.ask("gate", range, {question});
    room.run();
    const auto* answered = room.answered(id);
    ASSERT_NE(answered, nullptr);
    EXPECT_EQ(record.distances, std::vector<float>(again == 0 ? 0 : 6, 0.0F));
    if (again > 0) {
      EXPECT_EQ(answered->tokens.refreshed, 3) << "the share is computed all the same";
      EXPECT_TRUE(std::equal(record.computed.begin(), record.computed.begin() + 3, record.looked_at.begin()))
          << "the oldest";
    }
    const auto expected = room.expected("gate", range, question);
    const auto& told = answered->answers[0].tokens;
    ASSERT_EQ(told.empty(), expected.empty());
    EXPECT_TRUE(told.empty() || told[0] == expected[0]);
    room.desk.done(id);
  }
  room.desk.close("gate");
  EXPECT_TRUE(room.is_empty());
}

TEST(TopKTest, UglyDistancesChooseAsManyTokens) {
  Room room;
  Record record(room);
  room.desk.open("gate", make_refresh("topk", {.share = 0.25}));
  const auto measure = room.passes.measured;
  std::vector<float> told{0, 0, kNone, -1};
  room.passes.measured = [&](const run::Pass& pass, std::span<float> found) {
    std::copy_n(told.begin(), found.size(), found.begin());
    measure(pass, found);
  };
  for (int number = 0; number < 6; ++number) {
    room.append("gate", static_cast<float>(number));
    if (number < 2) continue;
    if (number == 4) told = {kNone, kNone, kNone, kNone};
    record.clear();
    const WindowId id = ask_last(room, "gate", 3);
    room.run();
    ASSERT_NE(room.answered(id), nullptr);
    if (number == 2) continue;
    EXPECT_EQ(room.answered(id)->tokens.refreshed, 1);
    EXPECT_EQ(record.computed.front(), record.looked_at[number < 4 ? 2 : 0]);
  }
  room.desk.close("gate");
}

/// Cameras that have answered a window of three patches and got another patch.
void begin(Room& room, const std::vector<std::string>& cameras, int height = 1, int width = 2) {
  float seed = 0;
  for (const std::string& camera : cameras) {
    room.desk.open(camera, make_refresh("topk", {.share = 0.5}));
    seed += 1000;
    for (int number = 0; number < 3; ++number)
      room.append(camera, seed + static_cast<float>(number), height, width);
    const WindowId id = ask_last(room, camera, 3);
    room.run();
    ASSERT_NE(room.answered(id), nullptr);
    room.append(camera, seed + 3, height, width);
  }
}

/// Whether some of the rows are of the camera whose patches count up from there.
bool shows(const run::Pass& pass, float seed) {
  return std::any_of(pass.rows.begin(), pass.rows.end(), [&](const run::Pass::Rows& rows) {
    return rows.tokens.empty() && rows.embedded.row<float>(0)[0] >= seed &&
           rows.embedded.row<float>(0)[0] < seed + 1000;
  });
}

TEST(TopKTest, CamerasAreLookedAtTogether) {
  Room room(256, {.rows = 512});
  begin(room, {"a", "b", "c"});
  std::vector<WindowId> ids;
  for (const char* camera : {"a", "b", "c"}) ids.push_back(ask_last(room, camera, 3));
  room.run();
  for (const WindowId& id : ids) {
    ASSERT_NE(room.answered(id), nullptr);
    EXPECT_EQ(room.answered(id)->tokens, (WindowTokens{6, 4, 2, 4}));
  }
  EXPECT_EQ(room.passes.probes, 1U);
  EXPECT_EQ(room.passes.probed_rows, 3 * (room.prompts.before() + 4));
}

TEST(TopKTest, ALookThatFailsTakesNobodyWithItAndLeavesTheStreamAsItWas) {
  Room room(256, {.rows = 512});
  begin(room, {"a", "bad", "c"});
  room.passes.before_probe = [](const run::Pass& pass) {
    if (shows(pass, 2000)) throw std::runtime_error("a bad row");
  };
  const WindowId a = ask_last(room, "a", 3), bad = ask_last(room, "bad", 3), c = ask_last(room, "c", 3);
  const std::int64_t free = room.book.free_pages();
  room.run();
  ASSERT_EQ(room.news.failed.size(), 1U);
  EXPECT_EQ(room.news.failed[0].window, bad);
  EXPECT_EQ(room.news.failed[0].reason, "a bad row");
  EXPECT_FALSE(room.news.failed[0].out_of_memory);
  for (const WindowId& id : {a, c}) {
    ASSERT_NE(room.answered(id), nullptr);
    EXPECT_EQ(room.answered(id)->tokens, (WindowTokens{6, 4, 2, 4}));
  }
  EXPECT_GE(room.book.free_pages(), free - 4) << "what it had is given back";
  // Its keys serve the next window.
  room.passes.before_probe = {};
  const WindowId again = ask_last(room, "bad", 3);
  room.run();
  ASSERT_NE(room.answered(again), nullptr);
  EXPECT_EQ(room.answered(again)->tokens, (WindowTokens{6, 4, 2, 4}));
  for (const char* camera : {"a", "bad", "c"}) room.desk.close(camera);
  EXPECT_TRUE(room.is_empty());
}

TEST(TopKTest, ALookThatHasNoMemoryIsTakenInPieces) {
  Room room(1024, {.rows = 512});
  begin(room, {"a", "b"}, 4, 5);
  std::size_t refused = 0;
  room.passes.before_probe = [&](const run::Pass& pass) {
    if (pass.positions.size() <= 70) return;
    ++refused;
    throw std::bad_alloc();
  };
  const WindowId a = ask_last(room, "a", 3), b = ask_last(room, "b", 3);
  room.run();
  EXPECT_GT(refused, 0U);
  ASSERT_TRUE(room.news.pressed);
  EXPECT_LE(room.news.pressed->rows, 70);
  for (const WindowId& id : {a, b}) {
    ASSERT_NE(room.answered(id), nullptr);
    EXPECT_EQ(room.answered(id)->tokens, (WindowTokens{60, 40, 20, 40}));
  }
  for (const char* camera : {"a", "b"}) room.desk.close(camera);
  EXPECT_TRUE(room.is_empty());
}

TEST(TopKTest, ALostDeviceComesOut) {
  Room room;
  begin(room, {"a"});
  room.passes.before_probe = [](const run::Pass&) { throw run::DeviceLost("gone"); };
  ask_last(room, "a", 3);
  EXPECT_THROW(room.desk.work({room.now}), run::DeviceLost);
}

TEST(TopKTest, PagesThatCannotBeCopiedFailTheirWindowAlone) {
  Room room(256, {.rows = 512}, 16);
  begin(room, {"a", "b"});
  // An answer that goes on sees what was there.
  const WindowId held = room.ask("a", {0, 3}, {room.question("Is there a car?", 20)});
  room.run();
  ASSERT_NE(room.answered(held), nullptr);
  room.passes.before_copy = [] { throw std::runtime_error("no copy"); };
  const WindowId a = ask_last(room, "a", 3), b = ask_last(room, "b", 3);
  room.run();
  ASSERT_EQ(room.news.failed.size(), 1U);
  EXPECT_EQ(room.news.failed[0].window, a);
  EXPECT_EQ(room.news.failed[0].reason, "no copy");
  ASSERT_NE(room.answered(b), nullptr);
  room.passes.before_copy = {};
  const WindowId again = ask_last(room, "a", 3);
  room.run();
  ASSERT_NE(room.answered(again), nullptr);
  EXPECT_EQ(room.answered(again)->tokens.kept, 0) << "half of its place was laid out";
  room.desk.done(held);
  for (const char* camera : {"a", "b"}) room.desk.close(camera);
  EXPECT_TRUE(room.is_empty());
}

// Between two looks: who follows another policy waits for the window, and who gives the window up leaves the
// keys.
TEST(TopKTest, ThePolicyChangesAndWindowsAreGivenUpBetweenLooks) {
  for (const std::string then : {"follow", "done", "close"}) {
    Room room(256, {.rows = 512}, 16);
    begin(room, {"gate"}, 8, 9);
    bool fails = true;
    room.passes.before_probe = [&](const run::Pass& pass) {
      if (fails && pass.positions.size() > 100) throw std::bad_alloc();
    };
    const WindowId id = ask_last(room, "gate", 3);
    room.desk.work({room.now});
    EXPECT_EQ(room.passes.probes, 1U);
    EXPECT_EQ(room.desk.placed(), 1U) << "to be tried again";
    fails = false;
    if (then == "follow") {
      room.desk.follow("gate", make_refresh("none"));
      room.run();
      ASSERT_NE(room.answered(id), nullptr);
      EXPECT_EQ(room.answered(id)->tokens, (WindowTokens{216, 144, 72, 144}));
      room.append("gate", 1004, 8, 9);
      const WindowId next = ask_last(room, "gate", 3);
      room.run();
      ASSERT_NE(room.answered(next), nullptr);
      EXPECT_EQ(room.answered(next)->tokens, (WindowTokens{216, 0, 0, 0})) << "another policy begins anew";
    } else if (then == "done") {
      room.desk.done(id);
      const WindowId next = ask_last(room, "gate", 3);
      room.run();
      ASSERT_NE(room.answered(next), nullptr);
      EXPECT_EQ(room.answered(next)->tokens, (WindowTokens{216, 144, 72, 144}));
    }
    room.desk.close("gate");
    room.run();
    EXPECT_EQ(room.news.failed.size(), then == "close" ? 1U : 0U);
    EXPECT_TRUE(room.is_empty()) << then;
  }
}

}  // namespace
}  // namespace vigil::stream
