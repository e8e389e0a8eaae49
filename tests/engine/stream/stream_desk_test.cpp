#include "engine/stream/stream_desk.h"

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
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using std::chrono::seconds;
using testing::EverySecond;
using testing::expected_tokens;
using testing::patch_of;
using testing::reason_of;
using testing::Room;

TEST(StreamDeskTest, AnswersAndContinues) {
  Room room;
  room.open("gate", 3);
  const auto a = room.question(), b = room.question("How many people are there?", 9);
  const WindowId id = room.ask("gate", {0, 3}, {a, b});
  EXPECT_EQ(id, (WindowId{"gate", 7, 0}));
  room.run();
  ASSERT_NE(room.answered(id), nullptr);
  const auto& answers = room.answered(id)->answers;
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].tokens.at(0), room.expected("gate", {0, 3}, a).at(0));
  EXPECT_EQ(answers[0].shared_tokens, room.prompts.before() + 6);
  EXPECT_EQ(answers[0].prompt_tokens, answers[0].shared_tokens + static_cast<std::int64_t>(a->tokens.size()));

  EXPECT_TRUE(room.desk.explain(id, 1));
  EXPECT_FALSE(room.desk.explain(id, 1)) << "once";
  EXPECT_FALSE(room.desk.explain(id, 2));
  EXPECT_FALSE(room.desk.explain({"gate", 6, 0}, 0)) << "of another engine";
  room.run();
  ASSERT_NE(room.told(id, 1), nullptr);
  EXPECT_EQ(room.told(id, 1)->answer.tokens, room.expected("gate", {0, 3}, b));
  EXPECT_FALSE(room.is_empty()) << "the first can still be continued";
  room.desk.done(id, 0);
  EXPECT_TRUE(room.is_empty());
  EXPECT_FALSE(room.desk.explain(id, 0));
}

TEST(StreamDeskTest, TwentyStridesUnderAllEqualFreshWindows) {
  Room room(64, {.rows = 16});
  room.open("gate", 4);
  const auto question = room.question("Is there a car?", 8);
  for (std::int64_t stride = 0; stride < 20; ++stride) {
    const PatchRange range{stride, stride + 4};
    const WindowId id = room.ask("gate", range, {question});
    room.run();
    ASSERT_TRUE(room.desk.explain(id, 0));
    room.run();
    ASSERT_EQ(room.told(id, 0)->answer.tokens, room.expected("gate", range, question)) << stride;
    room.append("gate", 100.0F + static_cast<float>(stride));
    room.desk.slide("gate", stride + 1);
    EXPECT_EQ(room.desk.stream("gate").patches().count(), 4);
  }
  EXPECT_TRUE(room.is_empty());
}

// What is kept was computed when older tokens were there: until the first of them goes, it is what it would
// be anew, wherever the window lies in the stream.
TEST(StreamDeskTest, KeptKeysOfAGrowingWindowAreThoseOfAFreshOne) {
  Room room;
  room.open("gate", 2, "none");
  room.open("other", 9, "none");
  const auto question = room.question("Is there a car?", 8);
  for (std::int64_t last = 2; last < 8; ++last) {
    const std::int64_t before = room.passes.rows;
    const WindowId id = room.ask("gate", {0, last}, {question});
    room.run();
    ASSERT_TRUE(room.desk.explain(id, 0));
    room.run();
    ASSERT_EQ(room.told(id, 0)->answer.tokens, room.expected("gate", {0, last}, question)) << last;
    const auto computed =
        room.passes.rows - before -
        static_cast<std::int64_t>(question->tokens.size() + room.told(id, 0)->answer.tokens.size());
    EXPECT_LE(computed, room.prompts.before() + (last == 2 ? 4 : 2)) << "the prompt and what is new";
    room.append("gate", 50.0F + static_cast<float>(last));
  }
  // The same frames, later in a stream: the texts are placed where the window is.
  const WindowId id = room.ask("other", {5, 9}, {question});
  room.run();
  ASSERT_TRUE(room.desk.explain(id, 0));
  room.run();
  EXPECT_EQ(room.told(id, 0)->answer.tokens, room.expected("other", {5, 9}, question));
  EXPECT_FALSE(room.is_empty());
  room.desk.close("gate");
  room.desk.close("other");
  EXPECT_TRUE(room.is_empty());
}

// A window that is explained goes on to see what it was asked about, whatever the stream computes anew.
TEST(StreamDeskTest, TextsAndTheNextWindowDoNotRace) {
  Room room(96, {.rows = 4});
  room.open("gate", 3, "none");
  const auto question = room.question("What happens?", 12);
  const WindowId first = room.ask("gate", {0, 3}, {question});
  room.run();
  const auto expected = room.expected("gate", {0, 3}, question);
  ASSERT_TRUE(room.desk.explain(first, 0));
  room.append("gate", 60);
  room.desk.slide("gate", 2);
  room.ask("gate", {2, 4}, {question});
  room.run();
  EXPECT_EQ(room.told(first, 0)->answer.tokens, expected);
}

// What is computed anew while a text still sees what was there lies elsewhere from then on; nobody's answer
// knows of the other.
TEST(StreamDeskTest, WhatIsComputedAnewWhileATextSeesItIsCopied) {
  std::vector<std::int32_t> alone;
  for (const bool is_held : {false, true}) {
    Room room(96, {.rows = 5});
    room.desk.open("gate", std::make_shared<EverySecond>());
    for (int i = 0; i < 4; ++i) room.append("gate", static_cast<float>(i));
    const auto question = room.lasting("gate", {0, 4}, 6);
    const WindowId first = room.ask("gate", {0, 4}, {question});
    room.run();
    if (is_held) {
      ASSERT_TRUE(room.desk.explain(first, 0));
    } else {
      room.desk.done(first);
    }
    room.append("gate", 60);
    room.desk.slide("gate", 1);
    const WindowId second = room.ask("gate", {1, 5}, {question});
    room.run();
    ASSERT_TRUE(room.desk.explain(second, 0));
    room.run();
    if (!is_held) {
      EXPECT_EQ(room.passes.copied, 0U) << "nobody else sees it";
      alone = room.told(second, 0)->answer.tokens;
      continue;
    }
    EXPECT_GT(room.passes.copied, 0U);
    EXPECT_EQ(room.told(first, 0)->answer.tokens, room.expected("gate", {0, 4}, question));
    EXPECT_EQ(room.told(second, 0)->answer.tokens, alone);
  }
}

TEST(StreamDeskTest, RequestsJoinAndLeaveBetweenSteps) {
  Room room;
  room.open("a", 2);
  room.open("b", 2);
  std::map<WindowId, CompiledQuestionPtr> asked;
  const auto longest = room.question("Describe it at length.", 40);
  const WindowId first = room.ask("a", {0, 2}, {longest});
  room.run();
  ASSERT_TRUE(room.desk.explain(first, 0));
  const auto expected = room.expected("a", {0, 2}, longest);
  std::size_t steps = 0;
  for (int i = 0; room.desk.due(); ++i) {
    if (i == 1) asked[room.ask("b", {0, 2}, {room.question("Is there a car?", 1)})] = nullptr;
    const std::uint64_t before = room.passes.passes;
    room.desk.work({room.now});
    room.take_news();
    steps += room.passes.passes - before;
  }
  EXPECT_EQ(room.told(first, 0)->answer.tokens, expected);
  EXPECT_EQ(room.news.answered.size(), 2U);
  // The second window took no pass of its own.
  EXPECT_EQ(steps, expected.size());
}

TEST(StreamDeskTest, TheMostUrgentIsComputedFirst) {
  Room room(64, {.rows = 8, .windows = 1});
  for (const char* camera : {"a", "b", "c"}) room.open(camera, 2);
  const auto question = room.question();
  const WindowId late = room.ask("a", {0, 2}, {question}, 30);
  const WindowId soon = room.ask("b", {0, 2}, {question}, 10);
  const WindowId between = room.ask("c", {0, 2}, {question}, 20);
  EXPECT_EQ(room.desk.due(), room.now + seconds(10));
  room.run();
  ASSERT_EQ(room.news.answered.size(), 3U);
  EXPECT_EQ(room.news.answered[0].window, soon);
  EXPECT_EQ(room.news.answered[1].window, between);
  EXPECT_EQ(room.news.answered[2].window, late);
}

// Otherwise they would come before the patches of newer ones, which are due before them, too.
TEST(StreamDeskTest, ATextThatIsLateBringsNoWindowAlongThatIsDueAfterOthersWork) {
  Room room;
  for (const char* camera : {"a", "b"}) room.open(camera, 2);
  const auto asked = room.lasting("a", {0, 2});
  const WindowId first = room.ask("a", {0, 2}, {asked}, 1);
  room.run();
  ASSERT_TRUE(room.desk.explain(first, 0));
  const WindowId second = room.ask("b", {0, 2}, {room.question()}, 9);
  std::int64_t before = room.passes.rows;
  room.desk.work({room.now, room.now + seconds(8)});
  EXPECT_EQ(room.passes.rows - before, 1) << "the text alone";
  before = room.passes.rows;
  room.desk.work({room.now, room.now + seconds(9)});
  EXPECT_GT(room.passes.rows - before, 2) << "the window is due as early as the others' work";
  room.run();
  EXPECT_EQ(room.told(first, 0)->answer.tokens, room.expected("a", {0, 2}, asked));
  EXPECT_NE(room.answered(second), nullptr);
}

TEST(StreamDeskTest, AWindowThatIsDueBeforeOthersWorkBringsAllThatThereIsRoomFor) {
  Room room;
  for (const char* camera : {"a", "b"}) room.open(camera, 2);
  room.ask("a", {0, 2}, {room.question()}, 1);
  room.ask("b", {0, 2}, {room.question()}, 9);
  room.desk.work({room.now, room.now + seconds(8)});
  room.take_news();
  EXPECT_EQ(room.news.answered.size(), 2U) << "in one pass, which reads the weights once";
}

// Who is overtaken by itself does not lose its place: under overload all are served in turn.
TEST(StreamDeskTest, OverloadServesAllCamerasAlike) {
  Room room(64, {.rows = 64, .windows = 1});
  constexpr int kCameras = 6;
  const auto question = room.question("Is there a car?", 1);
  std::map<std::string, int> served;
  for (int i = 0; i < kCameras; ++i) room.open("camera-" + std::to_string(i), 2);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < kCameras; ++i) {
      Asking asking;
      asking.patches = {0, 2};
      asking.questions.push_back({question, {}});
      asking.due = room.now + seconds(8);
      asking.overtakes = true;
      room.desk.ask("camera-" + std::to_string(i), std::move(asking));
    }
    room.now += seconds(8);
    // Half of what would be needed.
    for (int pass = 0; pass < kCameras / 2; ++pass) room.desk.work({room.now});
    room.take_news();
    for (const auto& each : room.news.answered) {
      ++served[each.window.camera];
      room.desk.done(each.window);
    }
    room.news.answered.clear();
  }
  const auto [least, most] = std::minmax_element(
      served.begin(), served.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(served.size(), static_cast<std::size_t>(kCameras));
  EXPECT_GE(2 * least->second, most->second)
      << least->first << ' ' << least->second << ", " << most->first << ' ' << most->second;
  EXPECT_EQ(room.news.overtaken.size() + 600, 200U * kCameras - room.desk.waiting());
}

TEST(StreamDeskTest, WhatIsPastItsDeadlineIsTakenBack) {
  Room room;
  room.open("gate", 3);
  const auto question = room.question("Describe it at length.", 40);
  const WindowId id = room.ask("gate", {0, 3}, {question, question});
  room.run();
  ASSERT_TRUE(room.desk.explain(id, 0));
  room.desk.work({room.now});
  room.now += seconds(59);
  room.desk.expire(room.now);
  EXPECT_EQ(room.desk.texts(), 1U);
  room.now += seconds(1);
  room.desk.expire(room.now);
  room.take_news();
  ASSERT_NE(room.told(id, 0), nullptr);
  EXPECT_EQ(reason_of(room.told(id, 0)->failure), "its time is over");
  EXPECT_TRUE(room.is_empty());
  EXPECT_FALSE(room.desk.due());
  EXPECT_FALSE(room.desk.explain(id, 1));
}

// A pass may take longer than a text may wait.
TEST(StreamDeskTest, TheTimeOfAWindowBeginsWhenItsAnswersAreThere) {
  Room room;
  room.open("gate", 3);
  const WindowId id = room.ask("gate", {0, 3}, {room.lasting("gate", {0, 3})});
  room.desk.work({room.now});
  room.now += seconds(100);
  room.run();
  ASSERT_NE(room.answered(id), nullptr);
  EXPECT_TRUE(room.desk.explain(id, 0));
  room.run();
  EXPECT_EQ(room.told(id, 0)->failure, nullptr);
}

TEST(StreamDeskTest, WhoTakesAnswersSaysHowMany) {
  Room room;
  for (const char* camera : {"a", "b", "c"}) room.open(camera, 2);
  const auto question = room.question();
  room.desk.allow(0);
  const WindowId first = room.ask("a", {0, 2}, {question}, 1);
  room.ask("b", {0, 2}, {question}, 2);
  room.ask("c", {0, 2}, {question}, 3);
  EXPECT_FALSE(room.desk.due());
  room.desk.work({room.now});
  EXPECT_EQ(room.passes.passes, 0U);
  room.desk.allow(1);
  room.run();
  ASSERT_EQ(room.news.answered.size(), 1U);
  EXPECT_EQ(room.news.answered[0].window, first);
  EXPECT_EQ(room.desk.waiting(), 2U);
  ASSERT_TRUE(room.desk.explain(first, 0)) << "texts go on";
  room.run();
  EXPECT_NE(room.told(first, 0), nullptr);
  room.desk.allow(2);
  room.run();
  EXPECT_EQ(room.news.answered.size(), 3U);
}

TEST(StreamDeskTest, TextsThatNobodyAskedForAreLetGo) {
  Room room;
  room.open("gate", 3);
  const auto lasting = room.lasting("gate", {0, 3});
  const WindowId id = room.ask("gate", {0, 3}, {lasting, lasting, lasting});
  room.desk.let_go(id);
  room.run();
  ASSERT_NE(room.answered(id), nullptr) << "a window that has no answers yet gets them";
  ASSERT_TRUE(room.desk.explain(id, 1));
  const std::int64_t held = room.book.free_pages();
  room.desk.let_go(id);
  EXPECT_GT(room.book.free_pages(), held);
  EXPECT_FALSE(room.desk.explain(id, 0));
  room.run();
  ASSERT_NE(room.told(id, 1), nullptr);
  EXPECT_EQ(room.told(id, 1)->answer.tokens, room.expected("gate", {0, 3}, lasting));
  EXPECT_TRUE(room.is_empty());
}

TEST(StreamDeskTest, AStreamMayChangeItsSizeAndNoWindowShowsBoth) {
  for (const char* policy : {"all", "none"}) {
    Room room;
    room.open("gate", 2, policy);
    room.append("gate", 7, 2, 3);
    room.append("gate", 8, 2, 3);
    const auto question = room.question();
    EXPECT_THROW(room.ask("gate", {1, 3}, {question}), std::invalid_argument);
    const auto a = room.lasting("gate", {0, 2}), b = room.lasting("gate", {2, 4});
    const WindowId before = room.ask("gate", {0, 2}, {a});
    const WindowId after = room.ask("gate", {2, 4}, {b});
    room.run();
    EXPECT_EQ(room.answered(before)->answers[0].tokens.at(0), room.expected("gate", {0, 2}, a).at(0));
    EXPECT_EQ(room.answered(after)->answers[0].tokens.at(0), room.expected("gate", {2, 4}, b).at(0));
    EXPECT_EQ(room.answered(after)->answers[0].shared_tokens, room.prompts.before() + 12);
    room.desk.done(before);
    room.desk.done(after);
    room.desk.close("gate");
    EXPECT_TRUE(room.is_empty());
  }
}

// Windows are asked on one device, and their texts go on on another one.
TEST(StreamDeskTest, TextsGoOnAtAnotherDesk) {
  Room here, there;
  there.passes.other = &here.passes;
  here.open("gate", 3);
  const auto a = here.lasting("gate", {0, 3}), b = here.lasting("gate", {0, 3}, 6);
  const WindowId id = here.ask("gate", {0, 3}, {a, here.question(), b});
  here.run();
  ASSERT_NE(here.answered(id), nullptr);
  const std::int64_t kept = here.book.free_pages();
  for (const std::size_t question : {0U, 2U}) {
    auto loan = here.desk.lend(id, question);
    ASSERT_TRUE(loan);
    EXPECT_FALSE(here.desk.lend(id, question)) << "once";
    EXPECT_FALSE(here.desk.explain(id, question));
    there.desk.adopt(std::move(*loan));
  }
  EXPECT_GT(here.book.free_pages(), kept) << "nothing is added to them here";
  EXPECT_LT(here.book.free_pages(), here.book.pages()) << "what they see stays";
  EXPECT_GE(there.book.free_pages(), kept) << "and takes no more room there";
  // The lender goes on, also over its time.
  here.append("gate", 90);
  here.desk.slide("gate", 1);
  here.ask("gate", {1, 4}, {here.question()});
  here.run();
  here.now += seconds(100);
  here.desk.expire(here.now);
  EXPECT_LT(here.book.free_pages(), here.book.pages());
  there.run();
  EXPECT_EQ(there.told(id, 0)->answer.tokens, here.expected("gate", {0, 3}, a));
  EXPECT_EQ(there.told(id, 2)->answer.tokens, here.expected("gate", {0, 3}, b));
  EXPECT_TRUE(there.is_empty());
  here.desk.done(id);
  EXPECT_TRUE(here.is_empty());
  EXPECT_FALSE(here.desk.lend(id, 1));
}

TEST(StreamDeskTest, RefusesWhatCanNeverBeAnswered) {
  Room room(16);
  room.open("gate", 3);
  const auto question = room.question();
  EXPECT_THROW(room.ask("gate", {0, 4}, {question}), std::invalid_argument);
  EXPECT_THROW(room.ask("gate", {2, 2}, {question}), std::invalid_argument);
  EXPECT_THROW(room.ask("nobody", {0, 1}, {question}), std::invalid_argument);
  EXPECT_THROW(room.open("gate"), std::invalid_argument);
  try {
    room.ask("gate", {0, 3}, {room.question("Is there a car?", 200)});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).rfind("a window with 1 question needs ", 0), 0U) << error.what();
    EXPECT_NE(std::string(error.what()).find("tokens of KV cache, there are 128"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(room.desk.due());
  const WindowId id = room.ask("gate", {0, 3}, {question});
  room.run();
  EXPECT_NE(room.answered(id), nullptr);
}

TEST(StreamDeskTest, AWindowWithoutQuestionsHasNoAnswers) {
  Room room;
  room.open("gate", 1);
  const WindowId id = room.ask("gate", {0, 1}, {});
  room.run();
  ASSERT_NE(room.answered(id), nullptr);
  EXPECT_TRUE(room.answered(id)->answers.empty());
  EXPECT_TRUE(room.is_empty());
}

/// Pages of a window of 6 patches and two long texts.
std::int64_t one_window() {
  Room room;
  const auto question = room.question("Describe it at length, please: 100", 24);
  const std::vector<CompiledQuestionPtr> two{question, question};
  return room.desk.pages_for(12, two);
}

// Streams that keep pages, and texts that want some: whoever fits alone is answered.
TEST(StreamDeskTest, NobodyWaitsForEverForPages) {
  Room room(one_window() + 1);
  const auto question = room.question("Describe it at length, please: 100", 24);
  for (const char* camera : {"a", "b", "c"}) {
    room.open(camera, 6, "none");
    const WindowId id = room.ask(camera, {0, 6}, {question});
    room.run();
    ASSERT_NE(room.answered(id), nullptr) << camera << ": what the others keep goes";
    room.desk.done(id);
  }
  // One that is held by nobody but its time holds up the next one, and no longer.
  const auto lasting = room.lasting("a", {0, 6});
  const WindowId held = room.ask("a", {0, 6}, {lasting, lasting});
  const WindowId waits = room.ask("b", {0, 6}, {lasting, lasting});
  room.run();
  ASSERT_NE(room.answered(held), nullptr);
  EXPECT_EQ(room.answered(waits), nullptr);
  EXPECT_FALSE(room.desk.due()) << "there is nothing to do until something goes";
  room.now += seconds(61);
  room.desk.expire(room.now);
  room.run();
  EXPECT_NE(room.answered(waits), nullptr);
}

TEST(StreamDeskTest, ASmallWindowDoesNotOvertakeALargeOneThatWaits) {
  Room room(one_window() + 2);
  room.open("large", 6);
  room.open("small", 1);
  const auto question = room.lasting("large", {0, 6});
  const WindowId held = room.ask("large", {0, 6}, {question, question});
  room.run();
  const WindowId large = room.ask("large", {0, 6}, {question, question}, 1);
  const WindowId small = room.ask("small", {0, 1}, {room.question("Fire?", 1)}, 2);
  room.run();
  EXPECT_EQ(room.answered(small), nullptr);
  room.desk.done(held);
  room.run();
  EXPECT_NE(room.answered(large), nullptr);
  room.desk.done(large);
  room.run();
  EXPECT_NE(room.answered(small), nullptr);
}

TEST(StreamDeskTest, WhoOvertakesKeepsWhatItShows) {
  Room room;
  room.open("gate", 5);
  room.open("other", 2);
  const auto question = room.question();
  room.desk.allow(0);
  room.ask("gate", {0, 4}, {question});
  room.desk.slide("gate", 2);
  const WindowId next = room.ask("gate", {1, 5}, {question}, 0, true);
  room.desk.allow(9);
  room.run();
  EXPECT_EQ(room.news.overtaken.size(), 1U);
  ASSERT_NE(room.answered(next), nullptr);
  EXPECT_EQ(room.desk.stream("gate").patches().first, 2);
}

}  // namespace
}  // namespace vigil::stream
