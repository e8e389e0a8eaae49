#include "engine/stream/compiled_question.h"

#include <stdexcept>
#include <utility>

namespace vigil::stream {

CompiledQuestionPtr QuestionCompiler::compile(const Question& question) {
  const model::Sampling& sampling = question.sampling;
  if (question.max_tokens < 1) throw std::invalid_argument("an answer needs room for at least one token");
  model::validate(sampling);
  Key key{question.text,  question.max_tokens,         sampling.temperature, sampling.top_k,
          sampling.top_p, sampling.repetition_penalty, sampling.seed,        sampling.stop};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;

  auto made = std::make_shared<CompiledQuestion>();
  made->tokens = prompts_.after(question.text);
  const auto before = prompts_.before_tokens();
  made->seen.assign(before.begin(), before.end());
  made->seen.push_back(folder_.config.video_token_id);
  made->seen.insert(made->seen.end(), made->tokens.begin(), made->tokens.end());
  made->max_tokens = question.max_tokens;
  made->sampling = sampling;
  ++compiled_;
  if (known_.size() >= kept_) known_.clear();
  return known_.emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace vigil::stream
