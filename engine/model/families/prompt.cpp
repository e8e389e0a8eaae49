#include "engine/model/families/prompt.h"

#include <array>
#include <stdexcept>
#include <string_view>

#include "engine/model/families/family.h"

namespace vigil::model {
namespace {

/// The chat of one question about a video, with one token in place of the visual ones.
ChatTokens tokens_of(const Tokenizer& tokenizer, const ChatFormat& format, const std::string& question) {
  const std::vector<ChatMessage> chat{{"user", {{PartKind::video, {}}, {PartKind::text, question}}}};
  const std::array<std::int64_t, 1> one{1};
  return tokenize_chat(tokenizer, format, chat, true, one);
}

/// Added tokens are found in a question, too, as transformers does it: it could end its turn and answer
/// itself.
void require_words(const Tokenizer& tokenizer, const std::string& question) {
  for (const std::int32_t id : tokenizer.encode(question)) {
    const std::string_view token = tokenizer.bytes(id);
    // Not every folder calls all tokens of the chat format special.
    if (tokenizer.is_special(id) || (token.starts_with("<|") && tokenizer.is_added(token))) {
      throw std::invalid_argument("a question must not hold the special token " + std::string(token));
    }
  }
}

}  // namespace

PromptBuilder::PromptBuilder(const Tokenizer& tokenizer, const ModelConfig& config)
    : tokenizer_(&tokenizer), format_(&family_of(config).chat) {
  require_chat_tokens(tokenizer, *format_, config);
  const ChatTokens tokens = tokens_of(tokenizer, *format_, "?");
  before_.assign(tokens.ids.begin(), tokens.ids.begin() + tokens.pictures[0].begin);
}

std::vector<std::int32_t> PromptBuilder::after(const std::string& question) const {
  require_words(*tokenizer_, question);
  const ChatTokens tokens = tokens_of(*tokenizer_, *format_, question);
  return {tokens.ids.begin() + tokens.pictures[0].end, tokens.ids.end()};
}

}  // namespace vigil::model
