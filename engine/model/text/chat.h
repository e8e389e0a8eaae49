// The chat format of Qwen2.5-VL: ChatML with placeholders for pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/model/text/tokenizer.h"

namespace vigil::model {

enum class PartKind : std::uint8_t { text, image, video };

struct ChatPart {
  PartKind kind = PartKind::text;
  /// Of a text part only.
  std::string text;
};

struct ChatMessage {
  /// "system", "user" or "assistant".
  std::string role;
  std::vector<ChatPart> parts;
};

/// Where the visual tokens of one image or video go: [begin, end) of the ids.
struct PictureRange {
  PartKind kind = PartKind::image;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const PictureRange&, const PictureRange&) = default;
};

struct ChatTokens {
  std::vector<std::int32_t> ids;
  /// In the order of the text.
  std::vector<PictureRange> pictures;
};

/// The text that the published chat template makes: the default system prompt unless the first message is
/// one, every picture as one placeholder between vision marks. `generation_prompt` opens the assistant's
/// turn.
std::string render_chat(std::span<const ChatMessage> messages, bool generation_prompt);

/// The ids of `render_chat`, with the placeholder of picture i repeated `picture_tokens[i]` times.
/// Throws std::invalid_argument if the number of pictures differs from that of the placeholders (a text that
/// contains one itself counts as one), or a count is not positive.
ChatTokens tokenize_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                         bool generation_prompt, std::span<const std::int64_t> picture_tokens);

/// Throws ModelError unless the tokenizer has the tokens that the chat format needs.
void require_chat_tokens(const Tokenizer& tokenizer, std::int32_t image_token_id, std::int32_t video_token_id,
                         std::int32_t vision_start_token_id, std::int32_t vision_end_token_id);

/// The template that a model folder carries, and whether `render_chat` does what it says.
struct ChatTemplate {
  /// Empty if the folder has none.
  std::filesystem::path file;
  /// Whether it is the published one, up to the spelling of blanks and quotes within tags.
  bool known = false;

  /// One line for the user, empty where there is nothing to say.
  std::string warning() const;
};

/// Looks into `chat_template.jinja`, `chat_template.json` and `tokenizer_config.json`, in this order. Throws
/// ModelError for a file that cannot be read.
ChatTemplate read_chat_template(const std::filesystem::path& folder);

}  // namespace vigil::model
