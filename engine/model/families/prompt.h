// The text around a window's frames, in the model's chat format, as token ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/model/files/config.h"
#include "engine/model/text/chat.h"
#include "engine/model/text/tokenizer.h"

namespace vigil::model {

/// What stands before the frames is the same for every question, so that the questions of a window share it.
/// Immutable, thread-safe.
class PromptBuilder {
 public:
  /// In the format of the configuration's family. The tokenizer has to outlive it. Throws ModelError if it
  /// lacks a token of the chat format.
  PromptBuilder(const Tokenizer& tokenizer, const ModelConfig& config);

  /// The ids before the first visual token: system prompt, the user's turn, the start mark of the video.
  std::span<const std::int32_t> before_tokens() const { return before_; }
  std::int64_t before() const { return static_cast<std::int64_t>(before_.size()); }

  /// The ids from the end mark of the video to where the answer begins. Throws std::invalid_argument for a
  /// question that contains a special token.
  std::vector<std::int32_t> after(const std::string& question) const;

 private:
  const Tokenizer* tokenizer_;
  const ChatFormat* format_;
  std::vector<std::int32_t> before_;
};

}  // namespace vigil::model
