// Texts that go on in another process: what is carried, and what of it is refused.
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/demo_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream::carried_texts_test {
namespace {

using stream::testing::DemoDesk;
using stream::testing::noise_window;
using stream::testing::reason_of;
using stream::testing::Room;

/// With as many pages as are sent.
struct Carried : StreamDesk::Carried {
  explicit Carried(const StreamDesk::Carried& of)
      : StreamDesk::Carried(of), count(static_cast<std::size_t>(of.view.pages)) {}
  std::size_t count;
};

std::vector<const std::byte*> pages_of(const Carried& carried) {
  std::vector<const std::byte*> pages;
  for (std::size_t page = 0; page < carried.count; ++page)
    pages.push_back(carried.pages.get() + page * carried.page_bytes);
  return pages;
}

WindowId receive(StreamDesk& desk, const Carried& carried, base::Clock::TimePoint deadline) {
  const std::vector<const std::byte*> pages = pages_of(carried);
  return desk.receive("gate", {.text = carried.text,
                               .view = carried.view,
                               .pages_form = carried.pages_form,
                               .pages = pages,
                               .is_far = carried.is_far,
                               .due = carried.due,
                               .deadline = deadline});
}

/// A window with two questions, that was answered.
struct Asked : Room {
  explicit Asked(std::string_view policy = "all") {
    open("gate", 3, policy);
    a = lasting("gate", {0, 3});
    b = lasting("gate", {0, 3}, 6);
    id = ask("gate", {0, 3}, {a, question(), b});
    run();
  }
  CompiledQuestionPtr a, b;
  WindowId id;
  const base::Clock::TimePoint later = base::Clock::TimePoint{} + std::chrono::seconds(60);
};

TEST(CarriedTextsTest, GoOnAtAnotherDeskAsTheyWouldHere) {
  Asked here;
  Room there;
  for (const std::size_t question : {0U, 2U}) {
    const auto carried = here.desk.carry(here.id, question);
    ASSERT_TRUE(carried);
    EXPECT_EQ(carried->page_bytes, here.passes.page_bytes());
    EXPECT_FALSE(here.desk.carry(here.id, question)) << "once";
    const WindowId id = receive(there.desk, Carried(*carried), here.later);
    there.run();
    ASSERT_NE(there.told(id, 0), nullptr);
    EXPECT_EQ(reason_of(there.told(id, 0)->failure), "");
    EXPECT_EQ(there.told(id, 0)->answer.tokens,
              here.expected("gate", {0, 3}, question == 0 ? here.a : here.b));
    EXPECT_EQ(there.told(id, 0)->answer.probability_yes,
              here.answered(here.id)->answers[question].probability_yes);
    EXPECT_TRUE(there.is_empty());
  }
  here.desk.done(here.id, 0);
  here.desk.done(here.id, 2);
  here.desk.done(here.id);
  here.desk.close("gate");
  EXPECT_TRUE(here.is_empty());
}

TEST(CarriedTextsTest, StayHereAsWellUntilTheirWindowIsOver) {
  Asked here;
  ASSERT_TRUE(here.desk.carry(here.id, 0));
  // Nobody asks for others, which are let go; this one was asked for.
  here.desk.let_go(here.id);
  ASSERT_TRUE(here.desk.explain(here.id, 0)) << "after all";
  here.run();
  ASSERT_NE(here.told(here.id, 0), nullptr);
  EXPECT_EQ(here.told(here.id, 0)->answer.tokens, here.expected("gate", {0, 3}, here.a));
  EXPECT_FALSE(here.desk.explain(here.id, 0)) << "once";

  Asked other;
  ASSERT_TRUE(other.desk.carry(other.id, 0));
  other.now += std::chrono::seconds(61);
  other.desk.expire(other.now);
  EXPECT_FALSE(other.desk.explain(other.id, 0)) << "its time is over, whatever became of it elsewhere";
  other.desk.done(other.id, 0);
  other.desk.close("gate");
  EXPECT_TRUE(other.is_empty());
}

TEST(CarriedTextsTest, OfWhatHasEndedOrIsGoneThereIsNothingToCarry) {
  Asked here;
  WindowId none = here.id;
  none.number += 100;
  EXPECT_FALSE(here.desk.carry(none, 0));
  EXPECT_FALSE(here.desk.carry(here.id, 7));
  Room brief;
  brief.open("gate", 1);
  const WindowId id = brief.ask("gate", {0, 1}, {brief.question("Is there a car?", 1)});
  brief.run();
  EXPECT_FALSE(brief.desk.carry(id, 0)) << "all was said";
  EXPECT_TRUE(brief.desk.explain(id, 0));
}

TEST(CarriedTextsTest, WhatCannotBeReadStaysAsItWas) {
  Asked here;
  const std::int64_t free = here.book.free_pages();
  here.passes.before_copy = [] { throw std::bad_alloc(); };
  EXPECT_THROW(here.desk.carry(here.id, 0), std::bad_alloc);
  here.passes.before_copy = {};
  EXPECT_EQ(here.book.free_pages(), free);
  EXPECT_TRUE(here.desk.explain(here.id, 0));
}

TEST(CarriedTextsTest, WhatDoesNotFitIsRefusedAndLeavesNothing) {
  Asked here;
  const auto carried = here.desk.carry(here.id, 0);
  ASSERT_TRUE(carried);
  const std::vector<std::function<void(Carried&)>> spoiled = {
      [](Carried& c) { ++c.pages_form; },
      [](Carried& c) { c.view.pages -= 1; },
      [](Carried& c) { c.view.pages += 1; },
      [](Carried& c) { c.view.pages = 0; },
      [](Carried& c) { c.view.parts.clear(); },
      [](Carried& c) { c.view.parts[0].page = -1; },
      [](Carried& c) { c.view.parts[0].page = 1000; },
      [](Carried& c) { c.view.parts[0].begin = -1; },
      [](Carried& c) { c.view.parts[0].begin = c.view.parts[0].end; },
      [](Carried& c) { c.view.parts[0].end = 9; },
      [](Carried& c) { c.view.parts[0].fills = true; },
      [](Carried& c) { --c.count; },
      [](Carried& c) { c.text.tokens.clear(); },
      [](Carried& c) { c.text.tokens[0] = -1; },
      [](Carried& c) { c.text.tokens[0] = std::numeric_limits<std::int32_t>::max(); },
      [](Carried& c) { c.text.tokens.assign(24, 300); },
      [](Carried& c) { c.text.seen.push_back(-5); },
      [](Carried& c) { c.text.max_tokens = 0; },
      [](Carried& c) { c.text.max_tokens = std::numeric_limits<int>::max(); },
      [](Carried& c) { c.text.position.h = std::numeric_limits<std::int32_t>::max(); },
      [](Carried& c) { c.text.sampling.temperature = -1; },
      [](Carried& c) { c.text.sampling.stop = {""}; },
  };
  for (std::size_t i = 0; i < spoiled.size(); ++i) {
    Room there;
    Carried bad(*carried);
    spoiled[i](bad);
    EXPECT_THROW(receive(there.desk, bad, here.later), std::invalid_argument) << i;
    EXPECT_TRUE(there.is_empty()) << i;
    EXPECT_EQ(there.desk.texts(), 0U);
  }
}

TEST(CarriedTextsTest, WithoutRoomTheyAreRefusedAndComeLater) {
  Asked here;
  const auto carried = here.desk.carry(here.id, 0);
  ASSERT_TRUE(carried);
  Room there;
  auto others = there.book.claim(there.book.pages() - carried->view.pages);
  EXPECT_THROW(receive(there.desk, Carried(*carried), here.later), std::runtime_error);
  others->give_back();
  EXPECT_TRUE(there.is_empty());
  there.passes.before_copy = [] { throw std::bad_alloc(); };
  EXPECT_THROW(receive(there.desk, Carried(*carried), here.later), std::bad_alloc);
  EXPECT_TRUE(there.is_empty());
  there.passes.before_copy = {};
  const WindowId id = receive(there.desk, Carried(*carried), here.later);
  there.run();
  ASSERT_NE(there.told(id, 0), nullptr);
}

TEST(CarriedTextsTest, AreGivenUpAfterTheirDeadline) {
  Asked here;
  const auto carried = here.desk.carry(here.id, 2);
  ASSERT_TRUE(carried);
  Room there;
  const WindowId id = receive(there.desk, Carried(*carried), there.now + std::chrono::seconds(3));
  there.now += std::chrono::seconds(4);
  there.desk.expire(there.now);
  there.take_news();
  ASSERT_NE(there.told(id, 0), nullptr);
  EXPECT_EQ(reason_of(there.told(id, 0)->failure), "its time is over");
  EXPECT_TRUE(there.is_empty());
}

/// Over a model: one that samples, one that is penalized for what it has said, and one with stop strings and
/// characters of several tokens.
std::vector<Question> harder() {
  Question drawn = stream::testing::question("Is there a car? Explain.", 24);
  drawn.sampling = {.temperature = 1.5F, .top_k = 40, .seed = 7, .stop = {}};
  Question penalized = stream::testing::question("How many people are there?", 24);
  penalized.sampling.repetition_penalty = 1.3F;
  Question stopped = stream::testing::question("Describe it.", 24);
  stopped.sampling = {.temperature = 2, .seed = 9, .stop = {"zebra", ". "}};
  return {stream::testing::question("Is there a person in the room?", 24), drawn, penalized, stopped};
}

TEST(CarriedTextsTest, OfAModelSayTheSameToTheLastToken) {
  for (const int page_tokens : {8, 16, 64}) {
    DemoDesk here(2048, {}, page_tokens), there(2048, {}, page_tokens), alone(2048, {}, page_tokens);
    const std::vector<ClipRequest> batch = {{noise_window(3, 21), harder()}};
    const auto expected = alone.answer(batch);
    const WindowId window = here.clips.ask(batch)[0].window;
    std::size_t said = 0;
    for (std::size_t question = 0; question < expected[0].size(); ++question) {
      const auto carried = here.desk.carry(window, question);
      if (!carried) {
        EXPECT_EQ(expected[0][question].tokens.size(), 1U);
        continue;
      }
      const WindowId id = receive(there.desk, Carried(*carried), base::Clock::TimePoint::max());
      const DeskNews news = there.work();
      ASSERT_EQ(news.told.size(), 1U);
      EXPECT_EQ(news.told[0].window, id);
      const Answer& answer = news.told[0].answer;
      said += answer.tokens.size();
      EXPECT_EQ(answer.tokens, expected[0][question].tokens) << question;
      EXPECT_EQ(answer.text, expected[0][question].text);
      EXPECT_EQ(answer.finish, expected[0][question].finish);
      EXPECT_EQ(answer.prompt_tokens, expected[0][question].prompt_tokens);
      EXPECT_EQ(answer.shared_tokens, expected[0][question].shared_tokens);
      EXPECT_EQ(there.free_pages(), there.model->book.pages());
    }
    EXPECT_GT(said, 15U);
    here.desk.done(window);
    EXPECT_EQ(here.free_pages(), here.model->book.pages());
  }
}

TEST(CarriedTextsTest, OfAnotherShapeOfPagesIsRefused) {
  DemoDesk here(2048, {}, 16), there(2048, {}, 64);
  const std::vector<ClipRequest> batch = {
      {noise_window(3, 21), {stream::testing::question("What is it?", 24)}}};
  const WindowId window = here.clips.ask(batch)[0].window;
  const auto carried = here.desk.carry(window, 0);
  ASSERT_TRUE(carried);
  EXPECT_THROW(receive(there.desk, Carried(*carried), base::Clock::TimePoint::max()), std::invalid_argument);
  EXPECT_EQ(there.free_pages(), there.model->book.pages());
}

}  // namespace
}  // namespace vigil::stream::carried_texts_test
