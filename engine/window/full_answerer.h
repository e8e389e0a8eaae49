// Answers by full computation: every window is prefilled from its first token. The yardstick of everything
// that saves work.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/kv/view.h"
#include "engine/model/decoder.h"
#include "engine/model/model_folder.h"
#include "engine/window/answerer.h"
#include "engine/window/prompt.h"

namespace vigil::window {

class FullAnswerer final : public WindowAnswerer {
 public:
  struct Options {
    kernels::DType compute = kernels::DType::f32;
    /// Tokens that all windows and questions of one call may hold together.
    std::int64_t kv_tokens = 16384;
    int page_tokens = 64;
    /// Rows of one forward pass: enough to keep the matrix products busy, few enough for their results to
    /// stay in a cache.
    std::int64_t chunk_rows = 1024;
    int threads = 0;
  };

  /// Throws ModelError for a folder that cannot answer: weights, tokenizer, no token for "Yes" or "No".
  FullAnswerer(std::shared_ptr<const model::ModelFolder> folder, const Options& options);

  std::int64_t max_visual_tokens() const override;
  std::vector<std::vector<Answer>> answer(std::span<const WindowRequest> requests) override;
  const AnswerTimes& times() const override { return times_; }

 private:
  /// A window whose frames are prefilled, and where its text goes on.
  struct Prefilled {
    kv::View view;
    model::PositionBuilder positions;
  };
  /// A question on its way to an answer.
  struct Turn;

  std::int64_t pages_for(const WindowRequest& request) const;
  void check(const WindowRequest& request) const;
  /// Every id of the prompt at least once, which is all that the repetition penalty asks for.
  std::vector<std::int32_t> prompt_ids(std::span<const std::int32_t> after) const;
  Prefilled prefill(const WindowRequest& request);
  void ask(std::vector<Turn>& turns);
  void decode(std::vector<Turn>& turns);
  /// Runs the rows of `turns` that are waiting in their `pending` tokens, in one pass, and leaves the logits
  /// of each one's last row.
  void advance(std::span<Turn* const> turns);
  void choose(Turn& turn);

  std::shared_ptr<const model::ModelFolder> folder_;
  Options options_;
  kernels::Stream stream_;
  model::Decoder decoder_;
  kv::PagePool pages_;
  PromptBuilder prompts_;
  std::vector<std::int32_t> yes_, no_;
  AnswerTimes times_;
  std::vector<float> hidden_, logits_;
};

}  // namespace vigil::window
