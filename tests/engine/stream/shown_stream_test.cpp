// Streams whose patches somebody wants to know of while they stay.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/page_sink.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using testing::EverySecond;
using testing::Room;

/// Copies what it is offered, and lets go of it.
class Copies final : public PageSink {
 public:
  explicit Copies(testing::SimulatedPasses& passes) : passes_(passes) {}
  struct Copy {
    Leaving why = Leaving::slid;
    std::int64_t number = 0;
    /// None without keys.
    std::vector<std::uint64_t> keys;
    friend bool operator==(const Copy&, const Copy&) = default;
  };
  bool takes_keyless() const override { return true; }
  void take(LeavingTokens tokens) noexcept override {
    std::size_t slot = 0;
    for (const LeavingPatch& patch : tokens.patches) {
      Copy& copy = all.emplace_back(Copy{tokens.why, patch.number, {}});
      for (std::int64_t i = 0; tokens.view.size() > 0 && i < patch.tokens->count(); ++i)
        copy.keys.push_back(passes_.read(tokens.view.slots()[slot++]).value);
    }
  }
  std::vector<std::int64_t> numbers(Leaving why) const {
    std::vector<std::int64_t> numbers;
    for (const Copy& each : all)
      if (each.why == why) numbers.push_back(each.number);
    return numbers;
  }
  std::vector<Copy> all;

 private:
  testing::SimulatedPasses& passes_;
};

using Numbers = std::vector<std::int64_t>;

struct ShownStream : ::testing::Test {
  Room room{64, {.rows = 4}, 4};
  std::shared_ptr<Copies> copies = std::make_shared<Copies>(room.passes);
  CompiledQuestionPtr question = room.question("Is there a car?", 1);

  void SetUp() override { room.desk.leave_to(copies); }
  void look(const PatchRange& range) {
    const WindowId id = room.ask("gate", range, {question});
    room.run();
    ASSERT_NE(room.answered(id), nullptr);
    room.desk.done(id);
  }
};

TEST_F(ShownStream, WhatWindowsHaveShownIsOfferedAsItIsAndStays) {
  room.open("gate", 5, "none");
  look({0, 4});
  const std::int64_t free = room.book.free_pages();
  EXPECT_FALSE(room.desk.show("gate")) << "no window is asked";
  EXPECT_EQ(copies->numbers(Leaving::shown), (Numbers{0, 1, 2, 3})) << "nobody has computed the last one's";
  EXPECT_EQ(room.book.free_pages(), free);
  EXPECT_TRUE(room.desk.stream("gate").keeps_pages());
  const std::vector<Copies::Copy> shown = std::exchange(copies->all, {});
  look({0, 5});
  room.desk.close("gate");
  ASSERT_EQ(copies->numbers(Leaving::closed), (Numbers{0, 1, 2, 3, 4}));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i].keys.size(), 2U);
    EXPECT_EQ(shown[i].keys, copies->all[i].keys) << i;
  }
  EXPECT_FALSE(room.desk.show("gate")) << "it has ended";
  EXPECT_FALSE(room.desk.show("nobody"));
}

TEST_F(ShownStream, WithoutKeysEachPatchIsOfferedOnce) {
  room.open("gate", 3, "all");
  EXPECT_FALSE(room.desk.show("gate"));
  EXPECT_EQ(copies->numbers(Leaving::shown), (Numbers{0, 1, 2}));
  room.append("gate", 3);
  room.desk.show("gate");
  EXPECT_EQ(copies->numbers(Leaving::shown), (Numbers{0, 1, 2, 3}));
  room.append("gate", 4);
  room.desk.close("gate");
  EXPECT_EQ(copies->numbers(Leaving::closed), Numbers{4});
  for (const Copies::Copy& each : copies->all) EXPECT_TRUE(each.keys.empty());
}

TEST_F(ShownStream, TellsAfterWhichWindowThereIsMore) {
  room.open("gate", 3, "none");
  look({0, 3});
  room.append("gate", 3);
  const WindowId next = room.ask("gate", {1, 4}, {question});
  const WindowId later = room.ask("gate", {2, 4}, {question});
  EXPECT_TRUE(room.desk.is_open(later));
  EXPECT_EQ(room.desk.show("gate"), next);
  EXPECT_EQ(copies->numbers(Leaving::shown), (Numbers{0, 1, 2}));
  EXPECT_TRUE(room.desk.is_open(next));
  while (room.desk.is_open(next)) room.desk.work({room.now});
  copies->all.clear();
  EXPECT_EQ(room.desk.show("gate"), later);
  EXPECT_EQ(copies->numbers(Leaving::shown).back(), 3);
  room.run();
  EXPECT_FALSE(room.desk.is_open(later));
  EXPECT_FALSE(room.desk.is_open(WindowId{"nobody", 7, 0}));
}

// Keys that a policy has computed anew are whole again when the window is computed.
TEST_F(ShownStream, NothingIsOfferedOfWhatIsBeingComputedAnew) {
  room.desk.open("gate", std::make_shared<EverySecond>());
  for (int i = 0; i < 6; ++i) room.append("gate", static_cast<float>(i));
  look({0, 5});
  const WindowId id = room.ask("gate", {1, 6}, {question});
  room.desk.work({room.now});
  ASSERT_TRUE(room.desk.is_open(id)) << "it takes more than a pass";
  EXPECT_EQ(room.desk.show("gate"), id);
  EXPECT_EQ(copies->numbers(Leaving::shown), Numbers{});
  room.run();
  EXPECT_FALSE(room.desk.show("gate"));
  EXPECT_EQ(copies->numbers(Leaving::shown), (Numbers{0, 1, 2, 3, 4, 5}));
}

/// What a camera's windows say: of each its probability and its first token; and what they cost.
struct Said {
  std::vector<std::pair<float, std::int32_t>> answers;
  std::int64_t rows = 0, free_pages = 0, kept = 0;
  friend bool operator==(const Said&, const Said&) = default;
};

/// Two cameras' windows, one after the other in a cache with little room; `shows`: one is shown at odd
/// moments.
Said watch(const RefreshPolicyPtr& policy, bool shows, std::size_t& shown) {
  Room room(24, {.rows = 5, .texts = 2, .windows = 2}, 4);
  const auto copies = std::make_shared<Copies>(room.passes);
  room.desk.leave_to(copies);
  std::mt19937 random(20261129);
  const auto show = [&] {
    if (shows && random() % 3 == 0) room.desk.show("gate");
  };
  Said said;
  const std::vector<CompiledQuestionPtr> questions{room.question("Fire?", 1), room.question("Car?", 3)};
  for (const std::string camera : {"gate", "yard"}) room.desk.open(camera, policy);
  for (int i = 0; i < 80; ++i) {
    std::vector<WindowId> asked;
    for (const std::string camera : {"gate", "yard"}) {
      room.append(camera, static_cast<float>(i));
      show();
      const std::int64_t last = room.desk.stream(camera).patches().last;
      const std::int64_t first = std::max<std::int64_t>(0, last - 5);
      room.desk.slide(camera, first);
      if (i % 2 == 0) asked.push_back(room.ask(camera, {first, last}, questions));
      show();
    }
    while (room.desk.due()) {
      room.desk.work({room.now});
      show();
    }
    room.take_news();
    for (const WindowId& id : asked) {
      const auto* answered = room.answered(id);
      EXPECT_NE(answered, nullptr);
      if (answered == nullptr) continue;
      for (const Answer& each : answered->answers)
        said.answers.emplace_back(each.probability_yes, each.tokens.empty() ? -1 : each.tokens.front());
      room.desk.done(id);
    }
  }
  said.rows = room.passes.rows;
  said.free_pages = room.book.free_pages();
  said.kept = room.book.kept();
  shown = copies->numbers(Leaving::shown).size();
  return said;
}

TEST(ShownDesk, NoAnswerDependsOnWhetherAStreamIsShown) {
  const std::vector<RefreshPolicyPtr> policies{
      make_refresh("none"), make_refresh("all"), std::make_shared<EverySecond>(),
      make_refresh("topk", {.share = 0.4}), make_refresh("first-k", {.share = 0.5})};
  for (std::size_t i = 0; i < policies.size(); ++i) {
    std::size_t shown = 0, unshown = 0;
    const Said with = watch(policies[i], true, shown);
    const Said without = watch(policies[i], false, unshown);
    EXPECT_GE(with.answers.size(), 100U);
    EXPECT_EQ(with, without) << "policy " << i;
    EXPECT_GT(shown, 50U) << "policy " << i;
    EXPECT_EQ(unshown, 0U);
  }
}

}  // namespace
}  // namespace vigil::stream
