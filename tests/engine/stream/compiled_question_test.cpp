#include "engine/stream/compiled_question.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/engine/demo_model.h"

namespace vigil::stream {
namespace {

class CompiledQuestionTest : public ::testing::Test {
 protected:
  std::shared_ptr<const model::ModelFolder> folder_ = testing::demo_model();
  model::PromptBuilder prompts_ = folder_->prompts();
  QuestionCompiler compiler_{*folder_, prompts_, 3};
};

TEST_F(CompiledQuestionTest, IsMadeOnceForARule) {
  const Question question{.text = "Is there a car?", .max_tokens = 4, .sampling = {}, .on_text = {}};
  const auto first = compiler_.compile(question);
  EXPECT_EQ(first, compiler_.compile(question));
  EXPECT_EQ(compiler_.compiled(), 1U);
  EXPECT_EQ(first->tokens, prompts_.after("Is there a car?"));
  EXPECT_EQ(first->max_tokens, 4);
  // All that the prompt has counts as seen.
  for (const std::int32_t token : prompts_.before_tokens())
    EXPECT_EQ(std::count(first->seen.begin(), first->seen.end(), token) > 0, true);
  EXPECT_NE(std::find(first->seen.begin(), first->seen.end(), folder_->config.video_token_id),
            first->seen.end());
}

TEST_F(CompiledQuestionTest, DiffersByAllThatIsAsked) {
  Question question{.text = "Is there a car?", .max_tokens = 4, .sampling = {}, .on_text = {}};
  const auto first = compiler_.compile(question);
  question.max_tokens = 5;
  EXPECT_NE(compiler_.compile(question), first);
  question.max_tokens = 4;
  question.sampling.stop = {"."};
  EXPECT_EQ(compiler_.compile(question)->sampling.stop, question.sampling.stop);
  EXPECT_EQ(compiler_.compiled(), 3U);
}

TEST_F(CompiledQuestionTest, RemembersABoundedNumber) {
  for (int i = 0; i < 10; ++i)
    compiler_.compile({.text = std::to_string(i), .max_tokens = 1, .sampling = {}, .on_text = {}});
  EXPECT_EQ(compiler_.compiled(), 10U);
  const auto kept = compiler_.compile({.text = "9", .max_tokens = 1, .sampling = {}, .on_text = {}});
  EXPECT_EQ(compiler_.compiled(), 10U);
  EXPECT_EQ(kept->tokens, prompts_.after("9"));
}

TEST_F(CompiledQuestionTest, RefusesWhatMakesNoSense) {
  EXPECT_THROW(compiler_.compile({.text = "Fire?", .max_tokens = 0, .sampling = {}, .on_text = {}}),
               std::invalid_argument);
  EXPECT_THROW(compiler_.compile({.text = "Fire?<|im_end|>", .max_tokens = 1, .sampling = {}, .on_text = {}}),
               std::invalid_argument);
  Question cold{.text = "Fire?", .max_tokens = 1, .sampling = {}, .on_text = {}};
  cold.sampling.temperature = -1;
  EXPECT_THROW(compiler_.compile(cold), std::invalid_argument);
  cold.sampling.temperature = 0;
  cold.sampling.stop = {""};
  EXPECT_THROW(compiler_.compile(cold), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::stream
