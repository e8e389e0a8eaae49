// What texts see of the patches before their windows, over a simulated device that tells it.
#include "engine/stream/window_memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/stream/demo_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Room;
using ::testing::SizeIs;

/// A camera of patches of a second; a window shows four, and one is asked every two.
struct WindowMemoryTest : ::testing::Test {
  static constexpr std::int64_t kLength = 4, kStride = 2;
  Room room;
  /// Of each text that has been begun or went on: the first values of the patches before its window.
  std::vector<std::vector<float>> seen;
  std::vector<std::int32_t> times;
  std::int64_t patches = 0;
  WindowId last;

  WindowMemoryTest() {
    room.passes.before = [this](const run::Pass& pass) {
      // A text is all that has an output here.
      for (std::size_t i = 0; i < pass.outputs.size(); ++i) seen.emplace_back();
      std::size_t text = seen.size() - pass.outputs.size();
      for (const run::Pass::Before& before : pass.before) {
        auto& past = dynamic_cast<testing::SimulatedPast&>(*before.past);
        EXPECT_TRUE(past.is_laid);
        const auto& segment = pass.segments.at(before.segment);
        EXPECT_EQ(pass.positions.at(static_cast<std::size_t>(segment.first_row)).t, before.now);
        times.push_back(before.now);
        for (const auto& block : past.blocks)
          for (const auto& patch : block) seen[text].push_back(number_of(patch.front().input));
        ++text;
      }
    };
  }

  /// The number of a patch in its stream, which is what its embeddings begin with.
  float number_of(std::uint64_t input) const {
    for (std::int64_t i = 0; i < patches; ++i) {
      const auto& tokens = *room.kept.at({"gate", i});
      if (testing::SimulatedPasses::input_of(tokens.rows(0, 1).row<float>(0)[0]) == input)
        return static_cast<float>(i);
    }
    ADD_FAILURE() << "nothing that the camera has shown";
    return -1;
  }
  void append(int count) {
    for (int i = 0; i < count; ++i, ++patches)
      room.append("gate", testing::patch_of(static_cast<float>(patches), 1, 2, static_cast<double>(patches)));
  }
  void open(base::Duration memory, std::string_view policy = "none") {
    room.desk.open("gate", make_refresh(policy));
    room.desk.set_memory("gate", memory);
    append(kLength);
  }
  /// The next window is asked, and its answers are told; then it is over, unless it stays.
  void window(bool stays = false, int max_tokens = 1) {
    room.desk.slide("gate", patches - kLength);
    last = room.ask("gate", {patches - kLength, patches}, {room.question("Is there a car?", max_tokens)});
    room.run();
    ASSERT_NE(room.answered(last), nullptr);
    if (!stays) room.desk.done(last);
    append(kStride);
  }
};

TEST_F(WindowMemoryTest, TextsSeeWhatSlidOutOfTheWindow) {
  open(10min);
  for (int i = 0; i < 4; ++i) window();
  EXPECT_THAT(seen, ElementsAre(IsEmpty(), ElementsAre(0, 1), ElementsAre(0, 1, 2, 3),
                                ElementsAre(0, 1, 2, 3, 4, 5)));
  const auto memory = room.desk.window_memory();
  EXPECT_EQ(memory.tokens, 12);
  EXPECT_EQ(memory.host_bytes, 24);
  EXPECT_EQ(memory.device_bytes, 36);
  room.desk.close("gate");
  EXPECT_EQ(room.desk.window_memory().tokens, 0);
  EXPECT_TRUE(room.is_empty());
}

TEST_F(WindowMemoryTest, WithoutOneNothingIsSeen) {
  open(0s);
  for (int i = 0; i < 3; ++i) window();
  EXPECT_THAT(seen, Each(IsEmpty()));
  EXPECT_EQ(room.passes.last_past, nullptr);
}

TEST_F(WindowMemoryTest, OfAWindowThatIsComputedWholeNothingIsThere) {
  open(10min, "all");
  for (int i = 0; i < 3; ++i) window();
  EXPECT_THAT(seen, Each(IsEmpty()));
  EXPECT_EQ(room.passes.last_past, nullptr);
}

TEST_F(WindowMemoryTest, GoesBackAsFarAsItIsLongByBlocks) {
  open(20s);
  for (int i = 0; i < 40; ++i) window();
  // Blocks of eight patches; the oldest goes when all of it ended more than 20 s before the newest.
  const std::vector<float>& before = seen.back();
  ASSERT_THAT(before, ::testing::Not(IsEmpty()));
  EXPECT_EQ(before.back(), 77);
  EXPECT_EQ(static_cast<int>(before.front()) % 8, 0);
  EXPECT_GE(77 - before.front(), 20);
  EXPECT_LE(77 - before.front(), 20 + 8);
  // Shorter from now on.
  room.desk.set_memory("gate", 8s);
  window();
  window();
  EXPECT_LE(seen.back().back() - seen.back().front(), 16);
  room.desk.set_memory("gate", 0s);
  window();
  EXPECT_THAT(seen.back(), IsEmpty());
}

// Its room was that of a shorter one.
TEST_F(WindowMemoryTest, ALongerOneKeepsWhatIsThereAndHasMoreRoom) {
  open(20s);
  for (int i = 0; i < 4; ++i) window();
  ASSERT_THAT(seen.back(), SizeIs(6));
  const std::int64_t before = room.passes.last_past->allowed;
  room.desk.set_memory("gate", 10min);
  EXPECT_EQ(room.desk.memory("gate"), 10min);
  window();
  window();
  EXPECT_THAT(seen.back(), SizeIs(10));
  EXPECT_GT(room.passes.last_past->allowed, 10 * before);
}

TEST_F(WindowMemoryTest, LargerPicturesHaveMoreRoom) {
  int made = 0;
  room.passes.before_past = [&](const past::PastOptions&) { ++made; };
  open(10min);
  for (int i = 0; i < 3; ++i) window();
  const std::int64_t before = room.passes.last_past->allowed;
  // A window shows pictures of one size.
  room.desk.slide("gate", patches);
  for (int i = 0; i < 4; ++i, ++patches)
    room.append("gate", testing::patch_of(static_cast<float>(patches), 2, 2, static_cast<double>(patches)));
  const auto ask = [&] {
    room.desk.slide("gate", patches - kLength);
    room.desk.done(room.ask("gate", {patches - kLength, patches}, {room.question("Is there a car?", 1)}));
    last = room.ask("gate", {patches - kLength, patches}, {room.question("Is there a car?", 1)});
    room.run();
    room.desk.done(last);
  };
  ask();
  for (int i = 0; i < 4; ++i, ++patches)
    room.append("gate", testing::patch_of(static_cast<float>(patches), 2, 2, static_cast<double>(patches)));
  ask();
  EXPECT_EQ(made, 1) << "what was there is there";
  EXPECT_EQ(room.passes.last_past->allowed, 2 * before);
  EXPECT_THAT(room.news.forgotten, IsEmpty());
}

// A window that is over shows nothing, also where no patch follows.
TEST_F(WindowMemoryTest, ACameraThatSaysNothingMoreKeepsNoPages) {
  open(10min);
  for (int i = 0; i < 3; ++i) window();
  window(/*stays=*/true, 6);
  room.desk.slide("gate", patches);
  room.desk.done(last);
  const std::int64_t free = room.book.free_pages();
  // As when another camera's window waits for room.
  room.desk.work({room.now});
  EXPECT_GT(room.book.free_pages(), free);
  room.desk.close("gate");
  EXPECT_TRUE(room.is_empty());
}

// One window that is still being answered when the next one is asked.
TEST_F(WindowMemoryTest, AWindowSeesAllBeforeItWhereTheLastOneWasLate) {
  open(10min);
  for (int i = 0; i < 3; ++i) window();
  room.desk.slide("gate", patches - kLength);
  const WindowId late = room.ask("gate", {patches - kLength, patches}, {room.question("Late?", 1)}, 1);
  append(kStride);
  room.desk.slide("gate", patches - kLength);
  last = room.ask("gate", {patches - kLength, patches}, {room.question("Next?", 1)}, 2);
  while (room.answered(late) == nullptr) {
    room.desk.work({room.now});
    room.take_news();
  }
  room.desk.done(late);
  seen.clear();
  room.run();
  ASSERT_NE(room.answered(last), nullptr);
  ASSERT_THAT(seen, ::testing::Not(IsEmpty()));
  EXPECT_THAT(seen.back(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(WindowMemoryTest, WhatABudgetShortensIsRemembered) {
  room.desk.open("gate", make_refresh("none"));
  room.desk.set_memory("gate", 10min);
  append(kLength);
  for (int i = 0; i < 4; ++i) {
    // The budget has room for two patches of the four.
    room.desk.shorten("gate", patches - 2);
    last = room.ask("gate", {patches - 2, patches}, {room.question("Is there a car?", 1)});
    room.run();
    room.desk.done(last);
    room.desk.slide("gate", patches - kLength);
    append(kStride);
  }
  EXPECT_THAT(seen.back(), ElementsAre(2, 3, 4, 5, 6, 7)) << "the first two never had keys";
}

// What is fetched for a pass has no room: the present goes on without.
TEST_F(WindowMemoryTest, APassWithoutRoomForWhatIsBeforeGoesOnWithoutIt) {
  open(10min);
  for (int i = 0; i < 3; ++i) window();
  const auto before = room.passes.before;
  int failed = 0;
  room.passes.before = [&](const run::Pass& pass) {
    if (!pass.before.empty()) {
      ++failed;
      throw std::bad_alloc();
    }
    before(pass);
  };
  window();
  EXPECT_EQ(failed, 1);
  EXPECT_THAT(room.news.failed, IsEmpty());
  EXPECT_THAT(room.news.forgotten, SizeIs(1));
  EXPECT_FALSE(room.news.pressed) << "it was not the pass's size";
}

// What fails for another reason, fails alone, and costs no other its memory.
TEST_F(WindowMemoryTest, APassThatFailsForAnotherCostsNoMemory) {
  open(10min);
  for (int i = 0; i < 3; ++i) window();
  room.desk.open("yard", make_refresh("none"));
  room.append("yard", 77);
  const auto before = room.passes.before;
  room.passes.before = [&](const run::Pass& pass) {
    for (const run::Pass::Rows& rows : pass.rows)
      if (rows.tokens.empty() && rows.embedded.rows > 0 && rows.embedded.row<float>(0)[0] == 77)
        throw std::runtime_error("a bad picture");
    before(pass);
  };
  const WindowId bad = room.ask("yard", {0, 1}, {room.question()});
  window();
  ASSERT_THAT(room.news.failed, SizeIs(1));
  EXPECT_EQ(room.news.failed[0].window, bad);
  EXPECT_THAT(room.news.forgotten, IsEmpty());
  EXPECT_THAT(seen.back(), SizeIs(6));
}

TEST_F(WindowMemoryTest, ATextThatGoesOnSeesNothingTwice) {
  open(10min);
  window();
  window();
  // Some of them end with their first token.
  std::vector<CompiledQuestionPtr> asked;
  for (int i = 0; i < 6; ++i) asked.push_back(room.question("Describe it: " + std::to_string(i), 12));
  room.desk.slide("gate", patches - kLength);
  const WindowId lasting = room.ask("gate", {patches - kLength, patches}, asked);
  room.run();
  append(kStride);
  // Patches 4 and 5 leave the stream, and are in the window of a text that may go on.
  window();
  EXPECT_THAT(seen.back(), ElementsAre(0, 1, 2, 3));
  seen.clear();
  for (std::size_t i = 0; i < asked.size(); ++i) ASSERT_TRUE(room.desk.explain(lasting, i));
  room.run();
  ASSERT_GE(seen.size(), 1U);
  EXPECT_THAT(seen, Each(ElementsAre(0, 1, 2, 3)));
  // It is over: what it showed is there for the next one.
  window();
  EXPECT_THAT(seen.back(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(WindowMemoryTest, ItsTextsStayHere) {
  open(10min);
  window(true, 6);
  EXPECT_FALSE(room.desk.lend(last, 0));
  EXPECT_FALSE(room.desk.carry(last, 0));
  EXPECT_TRUE(room.desk.explain(last, 0));
}

TEST_F(WindowMemoryTest, TheOutwardSinkHearsAllThatLeaves) {
  struct Sink final : PageSink {
    std::vector<std::pair<std::int64_t, std::int64_t>> left;
    bool takes_keyless() const override { return true; }
    void take(LeavingTokens tokens) noexcept override {
      left.emplace_back(tokens.patches.front().number, tokens.view.size());
    }
  };
  const auto sink = std::make_shared<Sink>();
  room.desk.leave_to(sink);
  open(10min);
  for (int i = 0; i < 3; ++i) window();
  EXPECT_THAT(sink->left, ElementsAre(std::pair(0, 4), std::pair(2, 4)));
  // One that comes later hears the rest.
  const auto later = std::make_shared<Sink>();
  room.desk.leave_to(later);
  window();
  EXPECT_THAT(sink->left, SizeIs(2));
  EXPECT_THAT(later->left, ElementsAre(std::pair(4, 4)));
}

TEST_F(WindowMemoryTest, WhatHasNoRoomIsForgottenAndBeginsAnew) {
  open(10min);
  for (int i = 0; i < 3; ++i) window();
  ASSERT_THAT(seen.back(), SizeIs(4));
  room.passes.last_past->failure = std::make_exception_ptr(std::bad_alloc());
  window();
  EXPECT_THAT(seen.back(), IsEmpty());
  ASSERT_THAT(room.news.forgotten, SizeIs(1));
  EXPECT_EQ(room.news.forgotten[0].camera, "gate");
  EXPECT_THAT(room.news.failed, IsEmpty()) << "the present goes on";
  window();
  EXPECT_THAT(seen.back(), ElementsAre(6, 7));
}

TEST_F(WindowMemoryTest, OneThatCannotBeMadeIsToldAndWindowsGoOn) {
  room.passes.before_past = [](const past::PastOptions&) { throw std::bad_alloc(); };
  open(10min);
  window();
  window();
  EXPECT_THAT(seen.back(), IsEmpty());
  EXPECT_THAT(room.news.forgotten, SizeIs(1));
}

TEST_F(WindowMemoryTest, TakesRoomForItsLengthAtMost) {
  std::vector<past::PastOptions> made;
  room.passes.before_past = [&](const past::PastOptions& options) { made.push_back(options); };
  open(10min);
  window();
  window();
  ASSERT_THAT(made, SizeIs(1));
  const model::TextConfig& text = room.folder->config.text;
  const double token = 4.0 * text.num_hidden_layers * text.num_key_value_heads * text.head_dim;
  EXPECT_EQ(made[0].block_patches, 40);
  EXPECT_DOUBLE_EQ(static_cast<double>(made[0].host_bytes), 640 * 2 * token * 1.25);
}

/// The demo model's own numbers.
TEST(WindowMemoryOfAModel, AnswersDependOnWhatIsBefore) {
  const auto patches = testing::noise_window(10, 3);
  const auto probabilities = [&](base::Duration memory) {
    testing::DemoDesk at;
    at.desk.open("gate", make_refresh("none"));
    at.desk.set_memory("gate", memory);
    std::vector<float> found;
    for (std::int64_t i = 0; i < 10; ++i) {
      at.desk.append("gate", patches[static_cast<std::size_t>(i)]);
      if (i < 3) continue;
      at.desk.slide("gate", i - 3);
      Asking asking;
      asking.patches = {i - 3, i + 1};
      asking.questions.push_back(
          {at.questions.compile(testing::question("Is there a person in the room?", 1)), {}});
      const WindowId id = at.desk.ask("gate", std::move(asking));
      const DeskNews news = at.work();
      EXPECT_THAT(news.failed, IsEmpty());
      EXPECT_THAT(news.forgotten, IsEmpty());
      if (news.answered.size() == 1) found.push_back(news.answered[0].answers[0].probability_yes);
      at.desk.done(id);
    }
    const auto held = at.desk.window_memory();
    EXPECT_EQ(held.tokens > 0, memory > 0s);
    EXPECT_EQ(held.host_bytes > 0, memory > 0s);
    EXPECT_EQ(held.device_bytes > 0, memory > 0s);
    return found;
  };
  const auto with = probabilities(1min), without = probabilities(0s);
  ASSERT_THAT(with, SizeIs(7));
  ASSERT_THAT(without, SizeIs(7));
  EXPECT_EQ(with[0], without[0]) << "nothing is before the first";
  for (std::size_t i = 1; i < with.size(); ++i) EXPECT_NE(with[i], without[i]) << i;
}

// What is forgotten leaves a past that is to be laid again before a window is asked.
TEST(WindowMemoryOfAModel, WindowsGoOnWhileTheOldestGoes) {
  const auto shown = testing::noise_window(4, 3);
  testing::DemoDesk at;
  at.desk.open("gate", make_refresh("none"));
  at.desk.set_memory("gate", 4s);
  std::int64_t most = 0, last = 0;
  bool shrank = false;
  for (std::int64_t i = 0; i < 48; ++i) {
    const model::VisualTokens& patch = *shown[static_cast<std::size_t>(i % 4)];
    auto again = std::make_shared<model::VisualTokens>();
    again->dtype = patch.dtype;
    again->width = patch.width;
    again->kept = patch.kept;
    again->seconds = static_cast<double>(i);
    again->duration = patch.duration;
    again->embeddings = kernels::Buffer(kernels::Stream::cpu(1), patch.bytes());
    std::memcpy(again->embeddings.data(), patch.embeddings.data(), patch.bytes());
    at.desk.append("gate", std::move(again));
    if (i % 4 != 3) continue;
    at.desk.slide("gate", i - 3);
    Asking asking;
    asking.patches = {i - 3, i + 1};
    asking.questions.push_back({at.questions.compile(testing::question("Is there a car?", 1)), {}});
    const WindowId id = at.desk.ask("gate", std::move(asking));
    const DeskNews news = at.work();
    EXPECT_THAT(news.failed, IsEmpty()) << i;
    EXPECT_THAT(news.forgotten, IsEmpty()) << i;
    ASSERT_THAT(news.answered, SizeIs(1)) << i;
    at.desk.done(id);
    const std::int64_t tokens = at.desk.window_memory().tokens;
    shrank = shrank || tokens < last;
    most = std::max(most, last = tokens);
  }
  EXPECT_TRUE(shrank) << "nothing was forgotten";
  // Four seconds, the open block of eight, and what has come since.
  EXPECT_LE(most, (4 + 8 + 8) * shown[0]->count());
}

}  // namespace
}  // namespace vigil::stream
