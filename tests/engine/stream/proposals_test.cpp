// Whatever is proposed to follow in a text, its answer is what it would be without.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/stream/stream_desk.h"
#include "tests/engine/demo_model.h"
#include "tests/engine/stream/demo_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using stream::testing::DemoDesk;
using stream::testing::expect_same;
using stream::testing::noise_window;
using stream::testing::Room;

using Tokens = std::vector<std::int32_t>;

/// A window of four patches that has its answer, whose text of ten tokens or more goes on.
struct GoesOn {
  Room room;
  CompiledQuestionPtr question;
  Tokens expected;
  WindowId id;
  std::int64_t free = 0;

  explicit GoesOn(std::int64_t pages = 64, std::size_t least = 10) : room(pages) {
    room.open("gate", 4);
    question = room.lasting("gate", {0, 4}, least);
    expected = room.expected("gate", {0, 4}, question);
    id = room.ask("gate", {0, 4}, {question});
    room.run();
    room.desk.tell_tokens(true);
    EXPECT_TRUE(room.desk.explain(id, 0));
  }
  /// One pass; what it adds.
  DeskNews::Spoken pass() {
    room.desk.work({room.now});
    DeskNews news = room.desk.take_news();
    EXPECT_EQ(news.spoken.size(), 1U);
    for (auto& told : news.told) room.news.told.push_back(std::move(told));
    return news.spoken.at(0);
  }
  /// Of the answer, from the n-th token on.
  Tokens next(std::size_t from, std::size_t count) const {
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(std::min(from, expected.size()));
    const auto end = expected.begin() + static_cast<std::ptrdiff_t>(std::min(from + count, expected.size()));
    return {begin, end};
  }
  void expect_the_answer() {
    room.run();
    const DeskNews::Told* told = room.told(id, 0);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->failure, nullptr) << testing::reason_of(told->failure);
    EXPECT_EQ(told->answer.tokens, expected);
    room.desk.done(id);
    room.desk.close("gate");
    EXPECT_TRUE(room.is_empty());
  }
};

TEST(ProposalsTest, WhatIsRightComesOfOnePassWithOneMore) {
  GoesOn text;
  const Tokens right = text.next(1, 4);
  ASSERT_TRUE(text.room.desk.propose(text.id, 0, 1, right));
  const std::int64_t rows = text.room.passes.rows;
  const DeskNews::Spoken spoken = text.pass();
  EXPECT_EQ(text.room.passes.rows - rows, 5);
  EXPECT_EQ(spoken.tokens, text.next(1, 5));
  EXPECT_EQ(spoken.from, 1U);
  EXPECT_EQ(spoken.proposed, 4U);
  EXPECT_EQ(spoken.accepted, 4U);
  EXPECT_FALSE(spoken.is_done);
  EXPECT_EQ(text.pass().tokens, text.next(6, 1)) << "nothing was proposed";
  text.expect_the_answer();
}

TEST(ProposalsTest, WhatIsWrongCostsItsRowsAlone) {
  for (std::size_t right = 0; right < 5; ++right) {
    GoesOn text;
    Tokens proposed = text.next(1, 5);
    proposed[right] = proposed[right] == 300 ? 301 : 300;
    ASSERT_TRUE(text.room.desk.propose(text.id, 0, 1, proposed));
    const DeskNews::Spoken spoken = text.pass();
    EXPECT_EQ(spoken.tokens, text.next(1, right + 1));
    EXPECT_EQ(spoken.proposed, 5U);
    EXPECT_EQ(spoken.accepted, right);
    text.expect_the_answer();
  }
}

TEST(ProposalsTest, AnAnswerEndsWhereItWould) {
  // It ends by its last token, and by its length, inside of what was proposed.
  GoesOn text;
  Tokens all = text.next(1, 100);
  const bool by_length = static_cast<int>(text.expected.size()) == text.question->max_tokens;
  const std::size_t rest = all.size();
  all.insert(all.end(), 5, 300);
  ASSERT_TRUE(text.room.desk.propose(text.id, 0, 1, all));
  const DeskNews::Spoken spoken = text.pass();
  EXPECT_EQ(spoken.tokens, text.next(1, rest));
  EXPECT_TRUE(spoken.is_done);
  EXPECT_LE(spoken.proposed, static_cast<std::size_t>(text.question->max_tokens) - 2);
  EXPECT_EQ(spoken.accepted, std::min(rest, spoken.proposed)) << "the one that ends it among them";
  ASSERT_EQ(text.room.news.told.size(), 1U);
  const Answer& answer = text.room.news.told[0].answer;
  EXPECT_EQ(answer.tokens, text.expected);
  EXPECT_EQ(answer.finish, by_length ? FinishReason::length : FinishReason::end_of_turn);
}

TEST(ProposalsTest, WhatIsNoTextThatGoesOnIsRefused) {
  GoesOn text;
  StreamDesk& desk = text.room.desk;
  const Tokens right = text.next(1, 2);
  WindowId other = text.id;
  ++other.number;
  EXPECT_FALSE(desk.propose(other, 0, 1, right));
  EXPECT_FALSE(desk.propose(text.id, 1, 1, right)) << "no such question";
  EXPECT_FALSE(desk.propose(text.id, 0, 0, right)) << "of a pass that is over";
  EXPECT_FALSE(desk.propose(text.id, 0, 2, right)) << "of one that is still to come";
  EXPECT_FALSE(desk.propose(text.id, 0, 1, {}));
  EXPECT_FALSE(desk.propose(text.id, 0, 1, Tokens{-1, right[0]}));
  EXPECT_EQ(text.pass().proposed, 0U);
  // A drafter may have more tokens than the model: what comes before such a one counts.
  const std::int32_t unknown = text.room.folder->config.text.vocab_size;
  EXPECT_TRUE(desk.propose(text.id, 0, 2, Tokens{text.next(2, 1)[0], unknown, text.next(3, 1)[0]}));
  const DeskNews::Spoken spoken = text.pass();
  EXPECT_EQ(spoken.proposed, 1U);
  EXPECT_EQ(spoken.tokens, text.next(2, 2));
  text.expect_the_answer();
  EXPECT_FALSE(desk.propose(text.id, 0, 1, right)) << "it has ended";
  // An answer that nobody continues.
  Room idle;
  idle.open("gate", 4);
  const auto asked = idle.lasting("gate", {0, 4});
  const WindowId id = idle.ask("gate", {0, 4}, {asked});
  EXPECT_FALSE(idle.desk.propose(id, 0, 0, right));
  idle.run();
  EXPECT_FALSE(idle.desk.propose(id, 0, 1, right));
}

TEST(ProposalsTest, TheLastProposalCounts) {
  GoesOn text;
  ASSERT_TRUE(text.room.desk.propose(text.id, 0, 1, Tokens(6, 300)));
  ASSERT_TRUE(text.room.desk.propose(text.id, 0, 1, text.next(1, 2)));
  const DeskNews::Spoken spoken = text.pass();
  EXPECT_EQ(spoken.proposed, 2U);
  EXPECT_EQ(spoken.tokens, text.next(1, 3));
  text.expect_the_answer();
}

TEST(ProposalsTest, APassThatFailsIsTriedAgainWithoutThem) {
  for (const bool out_of_memory : {false, true}) {
    GoesOn text;
    ASSERT_TRUE(text.room.desk.propose(text.id, 0, 1, text.next(1, 3)));
    text.room.passes.before = [&](const run::Pass& pass) {
      if (pass.outputs.size() < 2) return;
      if (out_of_memory) throw std::bad_alloc();
      throw std::runtime_error("too many rows");
    };
    text.room.desk.work({text.room.now});
    const DeskNews news = text.room.desk.take_news();
    EXPECT_TRUE(news.empty()) << "no answer, no end, and no smaller passes";
    EXPECT_EQ(text.pass().tokens, text.next(1, 1));
    text.expect_the_answer();
  }
}

TEST(ProposalsTest, WhereNothingCanBeChosenForWantOfMemoryTheNextPassChooses) {
  for (const std::size_t row : {0U, 1U, 2U, 3U}) {
    GoesOn text;
    ASSERT_TRUE(text.room.desk.propose(text.id, 0, 1, text.next(1, 3)));
    text.room.passes.likeliest_before = [&, fails = true](std::size_t i) mutable {
      if (i == row && std::exchange(fails, false)) throw std::bad_alloc();
    };
    text.room.desk.work({text.room.now});
    const DeskNews news = text.room.desk.take_news();
    if (row == 0) {
      EXPECT_TRUE(news.empty());
    } else {
      ASSERT_EQ(news.spoken.size(), 1U);
      EXPECT_EQ(news.spoken[0].tokens, text.next(1, row));
    }
    EXPECT_EQ(text.pass().tokens, text.next(1 + row, 1));
    text.expect_the_answer();
  }
}

TEST(ProposalsTest, WindowsComeBesideThem) {
  // More texts, with more proposals, than a pass has rows.
  Room room(2048, {.rows = 64});
  room.desk.tell_tokens(true);
  std::vector<WindowId> ids;
  std::vector<Tokens> expected;
  for (int camera = 0; camera < 12; ++camera) {
    const std::string name = "camera-" + std::to_string(camera);
    room.open(name, 4);
    const auto question = room.lasting(name, {0, 4}, 10);
    expected.push_back(room.expected(name, {0, 4}, question));
    ids.push_back(room.ask(name, {0, 4}, {question}));
  }
  room.run();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(room.desk.explain(ids[i], 0));
    ASSERT_TRUE(room.desk.propose(ids[i], 0, 1, Tokens(expected[i].begin() + 1, expected[i].begin() + 9)));
  }
  room.open("late", 4);
  const auto question = room.question("Is there a car?", 1);
  const WindowId late = room.ask("late", {0, 4}, {question});
  std::size_t proposed = 0;
  room.passes.most_rows = 0;
  room.desk.work({room.now});
  DeskNews news = room.desk.take_news();
  for (const auto& each : news.spoken) proposed += each.proposed;
  EXPECT_EQ(proposed, 16U) << "a quarter of the rows";
  ASSERT_EQ(news.answered.size(), 1U) << "the window was computed in the same pass";
  EXPECT_EQ(news.answered[0].window, late);
  EXPECT_LE(room.passes.most_rows, 64);
}

/// Right for a while, wrong from somewhere on, or nonsense.
Tokens some_proposal(std::mt19937& random, const Tokens& expected, std::size_t said) {
  Tokens proposed(expected.begin() + static_cast<std::ptrdiff_t>(said), expected.end());
  proposed.resize(random() % (proposed.size() + 4), 300);
  if (!proposed.empty() && random() % 3 > 0)
    proposed[random() % proposed.size()] = static_cast<std::int32_t>(300 + random() % 200);
  return proposed;
}

TEST(ProposalsTest, NothingThatIsProposedChangesAnyAnswer) {
  std::mt19937 random(20261129);
  for (int round = 0; round < 60; ++round) {
    const int page_tokens = 1 + static_cast<int>(random() % 9);
    Room room(4096 / page_tokens,
              {.rows = 8 + static_cast<std::int64_t>(random() % 100), .texts = 1 + random() % 4},
              page_tokens);
    room.desk.tell_tokens(true);
    struct Asked {
      WindowId id;
      CompiledQuestionPtr question;
      Tokens expected;
    };
    std::vector<Asked> asked;
    for (int camera = 0; camera < 4; ++camera) {
      const std::string name = "camera-" + std::to_string(camera);
      room.open(name, 3 + camera);
      const PatchRange range{0, 3 + camera};
      const auto question = room.lasting(name, range, 3 + random() % 6);
      asked.push_back({room.ask(name, range, {question}), question, room.expected(name, range, question)});
    }
    std::map<WindowId, std::size_t> said;
    std::size_t passes = 0, told = 0, tokens = 0;
    while (told < asked.size()) {
      ASSERT_LT(++passes, 1000U);
      ASSERT_TRUE(room.desk.due());
      room.desk.work({room.now});
      const DeskNews news = room.desk.take_news();
      for (const auto& each : news.answered) ASSERT_TRUE(room.desk.explain(each.window, 0));
      for (const auto& each : news.spoken) {
        EXPECT_EQ(each.from, said[each.window]);
        said[each.window] += each.tokens.size();
        tokens += each.tokens.size();
      }
      for (const auto& each : news.told) {
        const auto whose =
            std::find_if(asked.begin(), asked.end(), [&](const Asked& one) { return one.id == each.window; });
        ASSERT_EQ(each.failure, nullptr) << testing::reason_of(each.failure);
        ASSERT_EQ(each.answer.tokens, whose->expected) << "round " << round;
        ++told;
      }
      for (const Asked& each : asked)
        if (random() % 3 > 0)
          room.desk.propose(each.id, 0, said[each.id], some_proposal(random, each.expected, said[each.id]));
    }
    std::size_t all = 0;
    for (const Asked& each : asked) {
      all += each.expected.size();
      room.desk.done(each.id);
      room.desk.close(each.id.camera);
    }
    EXPECT_EQ(tokens, all);
    ASSERT_TRUE(room.is_empty());
  }
}

/// Texts of a window of the demo model, as they are by themselves, and with half of what they say proposed.
TEST(ProposalsTest, TheDemoModelSaysWhatItSaysWithoutThem) {
  std::mt19937 random(20261129);
  struct How {
    float temperature, penalty;
    int top_k;
  };
  for (const auto [temperature, penalty, top_k] : {How{0, 1, 0}, How{0.7F, 1, 5}, How{1.3F, 1.2F, 0}}) {
    std::vector<Question> questions;
    for (const char* text : {"Is there a car? Explain.", "How many people are there?", "What happens?"}) {
      Question& each = questions.emplace_back(testing::question(text, 16));
      each.sampling = {.temperature = temperature,
                       .top_k = top_k,
                       .top_p = 0.95F,
                       .repetition_penalty = penalty,
                       .seed = random(),
                       .stop = {}};
    }
    const ClipRequest request{noise_window(2, 15), questions};
    const auto whole = DemoDesk().answer(std::span(&request, 1))[0];
    DemoDesk parts;
    const std::int64_t free = parts.free_pages();
    parts.desk.tell_tokens(true);
    const WindowId id = parts.clips.ask(std::span(&request, 1))[0].window;
    for (std::size_t i = 0; i < questions.size(); ++i) ASSERT_TRUE(parts.desk.explain(id, i));
    std::vector<std::size_t> said(questions.size(), 1);
    std::size_t accepted = 0;
    const auto propose = [&](std::size_t question) {
      Tokens proposed = whole[question].tokens;
      proposed.erase(proposed.begin(), proposed.begin() + static_cast<std::ptrdiff_t>(said[question]));
      proposed.resize(std::min<std::size_t>(proposed.size(), random() % 6));
      if (!proposed.empty() && random() % 2 == 0) proposed.back() = 400;
      parts.desk.propose(id, question, said[question], proposed);
    };
    for (std::size_t i = 0; i < questions.size(); ++i) propose(i);
    std::size_t told = 0;
    while (parts.desk.due()) {
      parts.desk.work({parts.clock.now()});
      const DeskNews news = parts.desk.take_news();
      for (const auto& each : news.told) {
        ASSERT_EQ(each.failure, nullptr);
        expect_same(each.answer, whole[each.question]);
        ++told;
      }
      for (const auto& each : news.spoken) {
        said[each.question] += each.tokens.size();
        accepted += each.accepted;
        if (!each.is_done) propose(each.question);
      }
    }
    EXPECT_EQ(told, questions.size());
    EXPECT_GT(accepted, 0U);
    parts.desk.done(id);
    EXPECT_EQ(parts.free_pages(), free);
  }
}

}  // namespace
}  // namespace vigil::stream
