#include "engine/model/families/prompt.h"

#include <array>
#include <stdexcept>
#include <string_view>

#include "engine/model/text/chat.h"

namespace vigil::model {
namespace {

/// The chat of one question about a video, with one token in place of the visual ones.
model::ChatTokens tokens_of(const model::Tokenizer& tokenizer, const std::string& question) {
  const std::vector<model::ChatMessage> chat{
      {"user", {{model::PartKind::video, {}}, {model::PartKind::text, question}}}};
  const std::array<std::int64_t, 1> one{1};
  return model::tokenize_chat(tokenizer, chat, true, one);
}

/// Added tokens are found in a question, too, as transformers does it: it could end its turn and answer
/// itself.
void require_words(const model::Tokenizer& tokenizer, const std::string& question) {
  for (const std::int32_t id : tokenizer.encode(question)) {
    const std::string_view token = tokenizer.bytes(id);
    // Not every folder calls all tokens of the chat format special.
    if (tokenizer.is_special(id) || (token.starts_with("<|") && tokenizer.is_added(token))) {
      throw std::invalid_argument("a question must not hold the special token " + std::string(token));
    }
  }
}

}  // namespace

PromptBuilder::PromptBuilder(const model::ModelFolder& folder) : tokenizer_(&folder.text()) {
  const model::ModelConfig& config = folder.config;
  model::require_chat_tokens(*tokenizer_, config.image_token_id, config.video_token_id,
                             config.vision_start_token_id, config.vision_end_token_id);
  const model::ChatTokens tokens = tokens_of(*tokenizer_, "?");
  before_.assign(tokens.ids.begin(), tokens.ids.begin() + tokens.pictures[0].begin);
}

std::vector<std::int32_t> PromptBuilder::after(const std::string& question) const {
  require_words(*tokenizer_, question);
  const model::ChatTokens tokens = tokens_of(*tokenizer_, question);
  return {tokens.ids.begin() + tokens.pictures[0].end, tokens.ids.end()};
}

}  // namespace vigil::model
