#include "engine/window/full_answerer.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "tests/engine/window/demo_model.h"

namespace vigil::window {
namespace {

using testing::demo_model;
using testing::noise_window;

FullAnswerer make(std::int64_t kv_tokens = 2048, std::int64_t chunk_rows = 1024, int page_tokens = 64) {
  return FullAnswerer(demo_model(), {.compute = kernels::DType::f32,
                                     .kv_tokens = kv_tokens,
                                     .page_tokens = page_tokens,
                                     .chunk_rows = chunk_rows,
                                     .threads = 2});
}

Question question(const std::string& text, int max_tokens = 6) {
  return {.text = text, .max_tokens = max_tokens, .sampling = {}, .on_text = {}};
}

void expect_same(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.text, b.text);
  EXPECT_NEAR(a.probability_yes, b.probability_yes, 1e-4);
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
  EXPECT_EQ(a.finish, b.finish);
}

const std::vector<Question>& rules() {
  static const std::vector<Question> all{question("Is there a person in the room?"),
                                         question("Is there a car? Explain."),
                                         question("How many people are there?", 12)};
  return all;
}

TEST(FullAnswererTest, RulesThatShareAWindowAnswerAsIfEachWereAlone) {
  const auto window = noise_window(3, 1);
  FullAnswerer answerer = make();
  const WindowRequest together{window, rules()};
  const auto answers = answerer.answer(std::span(&together, 1));
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_EQ(answers[0].size(), 3U);
  for (std::size_t i = 0; i < rules().size(); ++i) {
    const WindowRequest alone{window, {rules()[i]}};
    expect_same(answers[0][i], answerer.answer(std::span(&alone, 1))[0][0]);
  }
}

TEST(FullAnswererTest, CamerasInABatchAnswerAsIfEachWereAlone) {
  const std::vector<WindowRequest> batch{{noise_window(3, 1), rules()},
                                         {noise_window(1, 2, 56, 140), rules()}};
  FullAnswerer answerer = make();
  const auto answers = answerer.answer(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto alone = answerer.answer(std::span(&batch[i], 1));
    for (std::size_t j = 0; j < rules().size(); ++j) expect_same(answers[i][j], alone[0][j]);
  }
}

TEST(FullAnswererTest, ABatchThatDoesNotFitAtOnceIsAnsweredInParts) {
  const std::vector<WindowRequest> batch(5, WindowRequest{noise_window(3, 1), rules()});
  FullAnswerer small = make(512);
  FullAnswerer large = make(8192);
  const auto in_parts = small.answer(batch);
  const auto at_once = large.answer(batch);
  for (std::size_t i = 0; i < batch.size(); ++i)
    for (std::size_t j = 0; j < rules().size(); ++j) expect_same(in_parts[i][j], at_once[i][j]);
}

TEST(FullAnswererTest, PiecesAndPagesOfAnySizeGiveTheSameAnswer) {
  const WindowRequest request{noise_window(3, 4), rules()};
  FullAnswerer one = make();
  FullAnswerer other = make(2048, 17, 7);
  const auto a = one.answer(std::span(&request, 1));
  const auto b = other.answer(std::span(&request, 1));
  for (std::size_t j = 0; j < rules().size(); ++j) expect_same(a[0][j], b[0][j]);
}

TEST(FullAnswererTest, AnswersLeaveNothingBehind) {
  const WindowRequest request{noise_window(2, 5), rules()};
  FullAnswerer answerer = make(512);
  const auto first = answerer.answer(std::span(&request, 1));
  for (int i = 0; i < 20; ++i) {
    const auto again = answerer.answer(std::span(&request, 1));
    for (std::size_t j = 0; j < rules().size(); ++j) expect_same(first[0][j], again[0][j]);
  }
}

TEST(FullAnswererTest, TheWindowMatters) {
  FullAnswerer answerer = make();
  const WindowRequest a{noise_window(2, 6), {question("Is there a person in the room?")}};
  const WindowRequest b{noise_window(2, 7), {question("Is there a person in the room?")}};
  EXPECT_NE(answerer.answer(std::span(&a, 1))[0][0].probability_yes,
            answerer.answer(std::span(&b, 1))[0][0].probability_yes);
}

TEST(FullAnswererTest, TheFirstTokenIsTheLikelierOfYesAndNo) {
  FullAnswerer answerer = make();
  const WindowRequest request{noise_window(2, 8), {question("Is there a person in the room?", 1)}};
  const Answer answer = answerer.answer(std::span(&request, 1))[0][0];
  ASSERT_EQ(answer.tokens.size(), 1U);
  EXPECT_EQ(answer.finish, FinishReason::length);
  EXPECT_EQ(answer.text, answer.probability_yes > 0.5F ? "Yes" : "No");
}

TEST(FullAnswererTest, TextComesInPiecesThatMakeTheAnswer) {
  std::string pieces;
  Question streamed = question("Is there a person in the room? Explain.", 16);
  streamed.on_text = [&](std::string_view piece) {
    EXPECT_FALSE(piece.empty());
    pieces += piece;
  };
  FullAnswerer answerer = make();
  const WindowRequest request{noise_window(2, 9), {streamed}};
  const Answer answer = answerer.answer(std::span(&request, 1))[0][0];
  EXPECT_FALSE(answer.text.empty());
  EXPECT_EQ(pieces, answer.text);
}

TEST(FullAnswererTest, AStopStringEndsTheAnswerBeforeIt) {
  FullAnswerer answerer = make();
  const WindowRequest whole{noise_window(2, 9), {question("Is there a person in the room? Explain.", 16)}};
  const std::string text = answerer.answer(std::span(&whole, 1))[0][0].text;
  ASSERT_GT(text.size(), 4U);
  Question stopped = whole.questions[0];
  stopped.sampling.stop = {text.substr(2, 2)};
  const WindowRequest request{whole.patches, {stopped}};
  const Answer answer = answerer.answer(std::span(&request, 1))[0][0];
  EXPECT_EQ(answer.finish, FinishReason::stop);
  EXPECT_EQ(answer.text, text.substr(0, text.find(text.substr(2, 2))));
}

TEST(FullAnswererTest, SeedsRepeatAndDiffer) {
  FullAnswerer answerer = make();
  const auto window = noise_window(2, 10);
  const auto sampled = [&](std::uint64_t seed) {
    Question q = question("What is the person doing?", 24);
    q.sampling.temperature = 5;
    q.sampling.seed = seed;
    const WindowRequest request{window, {q}};
    return answerer.answer(std::span(&request, 1))[0][0].tokens;
  };
  EXPECT_EQ(sampled(1), sampled(1));
  EXPECT_NE(sampled(1), sampled(2));
}

TEST(FullAnswererTest, RefusesWhatItCannotAnswerAndGoesOn) {
  FullAnswerer answerer = make(512);
  const WindowRequest good{noise_window(2, 11), {question("Is there a person in the room?")}};
  WindowRequest mixed = good;
  mixed.patches.push_back(noise_window(1, 12, 56, 56)[0]);
  WindowRequest large = good;
  for (int i = 0; i < 200; ++i) large.patches.push_back(good.patches[0]);
  WindowRequest silent = good;
  silent.questions[0].max_tokens = 0;
  WindowRequest placeholder = good;
  placeholder.questions[0].text = "What is <|video_pad|>?";
  for (const WindowRequest& bad : {WindowRequest{{}, good.questions}, mixed, large, silent, placeholder}) {
    const std::vector<WindowRequest> batch{good, bad};
    EXPECT_THROW(answerer.answer(batch), std::invalid_argument);
  }
  EXPECT_EQ(answerer.answer(std::span(&good, 1))[0].size(), 1U)
      << "what was refused must not have kept pages";
}

TEST(FullAnswererTest, AWindowWithoutQuestionsHasNoAnswers) {
  FullAnswerer answerer = make();
  const WindowRequest request{noise_window(1, 13), {}};
  EXPECT_TRUE(answerer.answer(std::span(&request, 1))[0].empty());
  EXPECT_TRUE(answerer.answer({}).empty());
}

TEST(FullAnswererTest, RefusesACacheBeyondEveryNumber) {
  try {
    make(std::numeric_limits<std::int64_t>::max());
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "a page pool of this size has more slots than 32 bits can name");
  }
}

}  // namespace
}  // namespace vigil::window
