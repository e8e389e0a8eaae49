// Conversations in ChatML, with placeholders for pictures, as text and as tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/files/config.h"
#include "engine/model/text/tokenizer.h"

namespace vigil::model {

/// How a family writes a conversation. Views are of text that lives as long as the program.
struct ChatFormat {
  /// As messages name it.
  std::string_view family;
  /// What the system says where no message is the system's.
  std::string_view default_system;
  /// Tokens around a turn: the first is followed by the role and a line break, the last by a line break.
  std::string_view turn_begin, turn_end;
  /// Tokens around a picture, and those that stand for one until its visual tokens do.
  std::string_view picture_begin, picture_end;
  std::string_view image, video;
  /// The published template, which says the same: within tags no blanks but one between words and beside
  /// quotes, and single quotes; no line break at its end.
  std::string_view published;
};

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
std::string render_chat(const ChatFormat& format, std::span<const ChatMessage> messages,
                        bool generation_prompt);

/// The ids of `render_chat`, with the placeholder of picture i repeated `picture_tokens[i]` times.
/// Throws std::invalid_argument if the number of pictures differs from that of the placeholders (a text that
/// contains one itself counts as one), or a count is not positive.
ChatTokens tokenize_chat(const Tokenizer& tokenizer, const ChatFormat& format,
                         std::span<const ChatMessage> messages, bool generation_prompt,
                         std::span<const std::int64_t> picture_tokens);

/// Throws ModelError unless the tokenizer has the tokens that the chat format needs, those of pictures with
/// the ids that the configuration says.
void require_chat_tokens(const Tokenizer& tokenizer, const ChatFormat& format, const ModelConfig& config);

/// The template that a model folder carries, and whether `render_chat` does what it says.
struct ChatTemplate {
  /// Empty if the folder has none.
  std::filesystem::path file;
  /// Whether it is the published one, up to the spelling of blanks and quotes within tags.
  bool known = false;
  /// Whose published one it is, or is not.
  std::string family = {};

  /// One line for the user, empty where there is nothing to say.
  std::string warning() const;
};

/// Looks into `chat_template.jinja`, `chat_template.json` and `tokenizer_config.json`, in this order. Throws
/// ModelError for a file that cannot be read.
ChatTemplate read_chat_template(const std::filesystem::path& folder, const ChatFormat& format);

}  // namespace vigil::model
