// Generation of answers, token by token, by the model that asked the questions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/window/cached_model.h"
#include "engine/window/turn.h"

namespace vigil::window {

class TurnGenerator final : public AnswerGenerator {
 public:
  TurnGenerator(std::shared_ptr<CachedModel> model, kernels::Stream stream);

  std::vector<Answer> generate(std::span<const Continuation> continuations) override;

 private:
  std::shared_ptr<CachedModel> model_;
  TurnRunner runner_;
};

}  // namespace vigil::window
