// Generation of answers, token by token, by the model that asked the questions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/run/cached_model.h"
#include "engine/stream/turn.h"

namespace vigil::stream {

class TurnGenerator final : public AnswerGenerator {
 public:
  /// Works on `streams`, one for each part of the model.
  TurnGenerator(std::shared_ptr<run::CachedModel> model, const std::vector<kernels::Stream>& streams);

  /// Completes what `asked` was asked, on other devices: turns are taken over with their pages when they are
  /// first continued. Both are the same model in as many parts, with pages of the same size; `model` has room
  /// for as many tokens. Throws std::invalid_argument otherwise.
  TurnGenerator(std::shared_ptr<run::CachedModel> asked, std::shared_ptr<run::CachedModel> model,
                const std::vector<kernels::Stream>& streams);

  std::vector<Completion> generate(std::span<const Continuation> continuations) override;

 private:
  /// Brings a turn's pages here.
  void take_over(CachedWindow& window, Turn& turn);

  /// Whose windows are continued, and who continues them.
  std::shared_ptr<run::CachedModel> asked_;
  std::shared_ptr<run::CachedModel> model_;
  TurnRunner runner_;
};

}  // namespace vigil::stream
