// Questions in a model's tokens: made once for a rule, asked of every window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engine/model/families/prompt.h"
#include "engine/model/language/sampler.h"
#include "engine/model/model_folder.h"
#include "engine/stream/answer.h"

namespace vigil::stream {

/// Immutable.
struct CompiledQuestion {
  /// What follows the frames, from the end mark of the video to where the answer begins.
  std::vector<std::int32_t> tokens;
  /// Every id of the prompt at least once, which is all that the repetition penalty asks for.
  std::vector<std::int32_t> seen;
  int max_tokens = 1;
  model::Sampling sampling;
};
using CompiledQuestionPtr = std::shared_ptr<const CompiledQuestion>;

/// Compiles questions, and remembers what it made of them. Not thread-safe.
class QuestionCompiler {
 public:
  /// What it is given has to outlive it. `kept`: questions at
  /// most that it remembers; then it begins anew, since rules seldom change.
  QuestionCompiler(const model::ModelFolder& folder, const model::PromptBuilder& prompts,
                   std::size_t kept = 4096)
      : folder_(folder), prompts_(prompts), kept_(kept) {}

  /// Throws std::invalid_argument for a question that makes no sense: without room for a token, with a
  /// special token, with a sampling that is none.
  CompiledQuestionPtr compile(const Question& question);

  /// Questions that were compiled, and not remembered.
  std::uint64_t compiled() const { return compiled_; }

 private:
  const model::ModelFolder& folder_;
  const model::PromptBuilder& prompts_;
  std::size_t kept_;
  /// By all that a question is compiled from.
  using Key = std::tuple<std::string, int, float, int, float, float, std::uint64_t, std::vector<std::string>>;
  std::map<Key, CompiledQuestionPtr> known_;
  std::uint64_t compiled_ = 0;
};

}  // namespace vigil::stream
