// What lies before the windows of all cameras of a desk takes no more of the host than it may together.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/stream/demo_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using testing::Room;
using ::testing::SizeIs;

/// Cameras of patches of a second and two tokens; a window shows four, and one is asked every two.
struct Cameras {
  static constexpr std::int64_t kLength = 4, kStride = 2;
  std::int64_t budget;
  Room room;
  std::map<std::string, std::int64_t> patches;
  /// Of each camera, what the last window saw before itself.
  std::map<std::string, std::int64_t> seen;

  explicit Cameras(std::int64_t bytes) : budget(bytes), room(64, {}, 8, testing::demo_model(), bytes) {
    room.passes.before = [this](const run::Pass& pass) {
      EXPECT_LE(room.desk.window_memory().host_bytes, budget);
      for (const run::Pass::Before& before : pass.before)
        EXPECT_TRUE(dynamic_cast<testing::SimulatedPast&>(*before.past).is_laid);
    };
  }

  void append(const std::string& camera, int count) {
    std::int64_t& next = patches[camera];
    for (int i = 0; i < count; ++i, ++next)
      room.append(camera, testing::patch_of(static_cast<float>(next), 1, 2, static_cast<double>(next)));
  }
  void open(const std::string& camera, base::Duration memory) {
    room.desk.open(camera, make_refresh("none"));
    room.desk.set_memory(camera, memory);
    patches[camera] = 0;
    append(camera, kLength);
  }
  WindowId window(const std::string& camera, bool stays = false) {
    const std::int64_t last = patches[camera];
    room.desk.slide(camera, last - kLength);
    const WindowId id = room.ask(camera, {last - kLength, last}, {room.question("Is there a car?", 1)});
    room.run();
    EXPECT_NE(room.answered(id), nullptr);
    if (!stays) room.desk.done(id);
    append(camera, kStride);
    return id;
  }
  void windows(int count, const std::vector<std::string>& of) {
    for (int i = 0; i < count; ++i)
      for (const std::string& camera : of) window(camera);
  }
  std::int64_t held() const { return room.desk.window_memory().host_bytes; }
  std::int64_t rooms() const { return room.desk.window_memory().room; }
  /// Of a memory of so many patches of two tokens.
  std::int64_t need(std::int64_t of) const {
    const model::TextConfig& text = room.folder->config.text;
    return (of + 8) * 2 * std::int64_t{4} * text.num_hidden_layers * text.num_key_value_heads *
           text.head_dim * 5 / 4;
  }
};

// A block of eight patches takes 32 bytes here.
TEST(WindowShares, OneCameraHasAllAndTheOldestGoesWhereThatIsFull) {
  Cameras now(5 * 32);
  now.open("gate", 10min);
  now.windows(60, {"gate"});
  EXPECT_EQ(now.rooms(), 5 * 32);
  EXPECT_GT(now.held(), 4 * 32 - 8);
  EXPECT_THAT(now.room.news.forgotten, IsEmpty());
  ASSERT_THAT(now.room.news.shortened, SizeIs(1)) << "once";
  const DeskNews::Shortened& told = now.room.news.shortened[0];
  EXPECT_EQ(told.camera, "gate");
  EXPECT_EQ(told.wanted, 10min);
  EXPECT_GE(told.remembered, 4 * 8s);
  EXPECT_LE(told.remembered, 5 * 8s);
  EXPECT_EQ(told.room, 5 * 32);
  EXPECT_GT(told.need, told.room);
}

TEST(WindowShares, ACameraThatComesHasAsMuchAsTheOthersAtOnce) {
  Cameras now(6 * 32);
  now.open("gate", 10min);
  now.windows(60, {"gate"});
  testing::SimulatedPast& gate = *now.room.passes.last_past;
  EXPECT_EQ(gate.allowed, 6 * 32);
  const auto newest = gate.blocks.back();
  now.open("yard", 10min);
  now.windows(2, {"yard"});
  testing::SimulatedPast& yard = *now.room.passes.last_past;
  ASSERT_NE(&yard, &gate);
  EXPECT_EQ(gate.allowed, 3 * 32);
  EXPECT_EQ(yard.allowed, 3 * 32);
  EXPECT_LE(gate.host_bytes(), 3 * 32) << "before it is asked again";
  EXPECT_GT(gate.host_bytes(), 1 * 32) << "no more went than had to";
  EXPECT_EQ(gate.blocks.back().size(), newest.size());
  EXPECT_EQ(now.rooms(), 6 * 32);
  // The one that came gets its room, and the other one keeps its.
  now.windows(40, {"gate", "yard"});
  EXPECT_GT(yard.host_bytes(), 2 * 32 - 8);
  EXPECT_GT(gate.host_bytes(), 2 * 32 - 8);
  EXPECT_THAT(now.room.news.forgotten, IsEmpty());
  EXPECT_THAT(now.room.news.shortened, SizeIs(3)) << "the first one's share has halved";
  // And all of it again.
  now.room.desk.close("yard");
  now.windows(40, {"gate"});
  EXPECT_EQ(gate.allowed, 6 * 32);
  EXPECT_GT(gate.host_bytes(), 4 * 32);
}

TEST(WindowShares, WhatOneDoesNotNeedIsTheOthers) {
  Cameras now(0);
  const std::int64_t small = now.need(1), large = now.need(1000);
  Cameras shared(large);
  shared.open("gate", 1s);
  shared.windows(2, {"gate"});
  EXPECT_EQ(shared.rooms(), small);
  const testing::SimulatedPast& gate = *shared.room.passes.last_past;
  shared.open("yard", 1000s);
  shared.windows(2, {"yard"});
  EXPECT_EQ(shared.room.passes.last_past->allowed, large - small);
  EXPECT_EQ(gate.allowed, small);
  // Longer from now on.
  shared.room.desk.set_memory("gate", 1000s);
  shared.windows(2, {"gate", "yard"});
  EXPECT_EQ(gate.allowed, large / 2);
  EXPECT_EQ(shared.room.passes.last_past->allowed, large / 2);
  // And short again.
  shared.room.desk.set_memory("gate", 1s);
  shared.windows(2, {"gate", "yard"});
  EXPECT_EQ(gate.allowed, small);
  EXPECT_EQ(shared.room.passes.last_past->allowed, large - small);
}

// Its room is half of what it could use, and pruning leaves less than that.
TEST(WindowShares, WhatIsTooOldDoesNotGoEarly) {
  Cameras measure(0);
  Cameras now(measure.need(20) / 2);
  now.open("gate", 20s);
  now.windows(40, {"gate"});
  // Of 80 patches those of 20 s, of the oldest block and of the window's stride.
  EXPECT_LE(now.held(), (20 + 8 + 2) * 4);
  EXPECT_THAT(now.room.news.shortened, IsEmpty());
}

TEST(WindowShares, ItIsToldAgainWhereItHadWhatItNeedsInBetween) {
  Cameras measure(0);
  const std::int64_t need = measure.need(20);
  Cameras now(need * 6 / 5);
  const std::int64_t of_patches = (20 + 8) * 2;
  now.room.passes.past_token = need * 4 / 5 / of_patches;
  const auto told = [&](const std::string& camera) {
    int count = 0;
    for (const DeskNews::Shortened& each : now.room.news.shortened) {
      EXPECT_LT(each.remembered, 20s);
      count += each.camera == camera ? 1 : 0;
    }
    return count;
  };
  now.open("gate", 20s);
  now.windows(40, {"gate"});
  EXPECT_EQ(told("gate"), 0) << "what is too old goes, and nothing else";
  now.open("yard", 20s);
  now.windows(40, {"gate", "yard"});
  EXPECT_EQ(told("gate"), 1);
  EXPECT_EQ(told("yard"), 1);
  now.room.desk.close("yard");
  now.windows(40, {"gate"});
  EXPECT_EQ(told("gate"), 1);
  now.open("yard", 20s);
  now.windows(40, {"gate", "yard"});
  EXPECT_EQ(told("gate"), 2);
  EXPECT_THAT(now.room.news.forgotten, IsEmpty());
}

TEST(WindowShares, WhereABlockHasNoRoomBlocksAreSmaller) {
  Cameras now(6 * 4);
  now.open("gate", 10min);
  now.windows(3, {"gate"});
  EXPECT_THAT(now.room.news.shortened, IsEmpty());
  now.windows(20, {"gate"});
  for (int i = 0; i < 20; ++i) {
    now.windows(1, {"gate"});
    EXPECT_GE(now.held(), 2 * 4) << "it does not begin anew again and again";
  }
  EXPECT_THAT(now.room.news.forgotten, IsEmpty());
  EXPECT_THAT(now.room.news.failed, IsEmpty());
  EXPECT_THAT(now.room.news.shortened, SizeIs(1));
}

TEST(WindowShares, WhereOnePatchHasNoRoomNothingIsGatheredAndWindowsGoOn) {
  for (const std::int64_t budget : {0, 3}) {
    Cameras now(budget);
    now.open("gate", 10min);
    now.windows(20, {"gate"});
    EXPECT_EQ(now.held(), 0);
    EXPECT_THAT(now.room.news.forgotten, IsEmpty());
    EXPECT_THAT(now.room.news.failed, IsEmpty());
    ASSERT_THAT(now.room.news.shortened, SizeIs(1)) << budget;
    EXPECT_EQ(now.room.news.shortened[0].remembered, 0s);
  }
}

TEST(WindowShares, ADeeperCutIsToldAnew) {
  Cameras now(16 * 32);
  now.open("gate", 10min);
  now.windows(100, {"gate"});
  EXPECT_THAT(now.room.news.shortened, SizeIs(1));
  for (const char* const camera : {"yard", "hall", "roof"}) now.open(camera, 10min);
  now.windows(4, {"yard", "hall", "roof", "gate"});
  const auto& all = now.room.news.shortened;
  const auto rooms = [&] {
    std::vector<std::int64_t> told;
    for (const DeskNews::Shortened& each : all)
      if (each.camera == "gate") told.push_back(each.room);
    return told;
  };
  EXPECT_THAT(rooms(), ::testing::ElementsAre(16 * 32, 8 * 32, 4 * 32));
}

// A question about the past has what cameras leave, and takes nothing from them.
TEST(WindowShares, WhatIsRestoredTakesNothingFromCameras) {
  Cameras now(6 * 32);
  now.open("gate", 10min);
  now.windows(60, {"gate"});
  testing::SimulatedPast& gate = *now.room.passes.last_past;
  const std::int64_t held = now.held();
  std::vector<RememberedPatch> patches;
  for (int i = 0; i < 12; ++i)
    patches.push_back({testing::patch_of(static_cast<float>(i), 1, 2, static_cast<double>(i)), i, true});
  ASSERT_TRUE(now.room.desk.restore("past", patches));
  now.room.desk.set_memory("past", 10min);
  now.room.desk.slide("past", 8);
  const WindowId id = now.room.ask("past", {8, 12}, {now.room.question("Is there a car?", 1)});
  now.room.run();
  now.room.desk.done(id);
  EXPECT_EQ(gate.allowed, 6 * 32);
  EXPECT_EQ(now.held(), held);
  const auto& all = now.room.news.shortened;
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const DeskNews::Shortened& each) {
    return each.camera == "past" && each.room == 0;
  }));
  now.room.desk.close("past");
}

// What a window sees that may still be asked for a text takes room, whosever it was.
TEST(WindowShares, WhatAWindowSawCountsUntilItIsOver) {
  Cameras now(6 * 32);
  now.open("gate", 10min);
  now.windows(20, {"gate"});
  const WindowId lasting = now.window("gate", /*stays=*/true);
  now.room.desk.set_memory("gate", 0s);
  now.open("yard", 10min);
  now.windows(3, {"yard"});
  EXPECT_EQ(now.room.passes.last_past->allowed, 3 * 32);
  now.room.desk.done(lasting);
  now.windows(1, {"yard"});
  EXPECT_EQ(now.room.passes.last_past->allowed, 6 * 32);
}

/// The demo model's own bytes.
TEST(WindowShares, OfAModelNeverMoreThanTheyMay) {
  constexpr std::int64_t kBudget = std::int64_t{600} << 10U;
  const auto shown = testing::noise_window(4, 3);
  testing::DemoDesk at(2048, {}, 64, testing::demo_model(), kBudget);
  std::int64_t most = 0;
  std::size_t shortened = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    for (const std::string camera : {"gate", "yard"}) {
      // The second one comes late.
      const std::int64_t number = camera == "gate" ? i : i - 32;
      if (number < 0) continue;
      if (number == 0) {
        at.desk.open(camera, make_refresh("none"));
        at.desk.set_memory(camera, 1min);
      }
      const model::VisualTokens& patch = *shown[static_cast<std::size_t>(i % 4)];
      auto again = std::make_shared<model::VisualTokens>();
      again->dtype = patch.dtype;
      again->width = patch.width;
      again->kept = patch.kept;
      again->seconds = static_cast<double>(number);
      again->duration = 1;
      again->embeddings = kernels::Buffer(kernels::Stream::cpu(1), patch.bytes());
      std::memcpy(again->embeddings.data(), patch.embeddings.data(), patch.bytes());
      at.desk.append(camera, std::move(again));
      if (number % 4 != 3) continue;
      at.desk.slide(camera, number - 3);
      Asking asking;
      asking.patches = {number - 3, number + 1};
      asking.questions.push_back({at.questions.compile(testing::question("Is there a car?", 1)), {}});
      const WindowId id = at.desk.ask(camera, std::move(asking));
      const DeskNews news = at.work();
      EXPECT_THAT(news.failed, IsEmpty()) << i;
      EXPECT_THAT(news.forgotten, IsEmpty())
          << i << ": " << (news.forgotten.empty() ? "" : news.forgotten[0].reason);
      shortened += news.shortened.size();
      at.desk.done(id);
      const auto memory = at.desk.window_memory();
      EXPECT_LE(memory.host_bytes, kBudget);
      most = std::max(most, memory.host_bytes);
    }
  }
  EXPECT_GT(most, kBudget / 2);
  EXPECT_EQ(shortened, 3U) << "the first one's share halves";
}

}  // namespace
}  // namespace vigil::stream
