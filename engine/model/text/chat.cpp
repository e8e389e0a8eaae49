#include "engine/model/text/chat.h"

#include <stdexcept>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Within tags: no blanks but one between words (and beside quotes), single quotes. Outside: as it is,
/// without \r and a last newline.
std::string normalized(std::string_view text) {
  std::string out;
  bool in_tag = false;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view two = text.substr(i, 2);
    if (!in_string && !in_tag && (two == "{%" || two == "{{")) in_tag = true;
    if (!in_string && in_tag && (two == "%}" || two == "}}")) {
      in_tag = false;
      out.append(two);
      ++i;
    } else if (in_tag && (c == '\'' || c == '"')) {
      in_string = !in_string;
      out += '\'';
    } else if (in_tag && !in_string && is_blank(c)) {
      const char before = out.empty() ? '\0' : out.back();
      std::size_t next = i;
      while (next + 1 < text.size() && is_blank(text[next + 1])) ++next;
      const char after = next + 1 < text.size() ? text[next + 1] : '\0';
      const auto separates = [](char side) {
        return is_word(side) || side == '\'' || side == '"' || side == ']';
      };
      if (separates(before) && separates(after) && (is_word(before) || is_word(after))) out += ' ';
      i = next;
    } else if (c != '\r') {
      out += c;
    }
  }
  if (out.ends_with('\n') && !text.empty() && out.ends_with("%}\n")) out.pop_back();
  return out;
}

/// `chat_template` of a JSON file: a text, or a list of named texts of which "default" counts. Null if there
/// is none.
const Json* template_in(const Json& root) {
  const auto found = root.find("chat_template");
  if (found == root.end()) return nullptr;
  if (found->is_string()) return &*found;
  if (!found->is_array()) return nullptr;
  for (const Json& item : *found) {
    if (item.is_object() && item.value("name", Json()) == "default" && item.contains("template") &&
        item["template"].is_string()) {
      return &item["template"];
    }
  }
  return nullptr;
}

}  // namespace

std::string render_chat(const ChatFormat& format, std::span<const ChatMessage> messages,
                        bool generation_prompt) {
  std::string text;
  const auto begin = [&](std::string_view role) { text.append(format.turn_begin).append(role).append("\n"); };
  const auto end = [&] { text.append(format.turn_end).append("\n"); };
  if (!messages.empty() && messages.front().role != "system") {
    begin("system");
    text += format.default_system;
    end();
  }
  for (const ChatMessage& message : messages) {
    begin(message.role);
    for (const ChatPart& part : message.parts) {
      if (part.kind == PartKind::text) {
        text += part.text;
      } else {
        text.append(format.picture_begin)
            .append(part.kind == PartKind::image ? format.image : format.video)
            .append(format.picture_end);
      }
    }
    end();
  }
  if (generation_prompt) begin("assistant");
  return text;
}

ChatTokens tokenize_chat(const Tokenizer& tokenizer, const ChatFormat& format,
                         std::span<const ChatMessage> messages, bool generation_prompt,
                         std::span<const std::int64_t> picture_tokens) {
  const std::int32_t image = tokenizer.find(format.image);
  const std::int32_t video = tokenizer.find(format.video);
  ChatTokens tokens;
  std::size_t pictures = 0;
  for (const std::int32_t id : tokenizer.encode(render_chat(format, messages, generation_prompt))) {
    if (id != image && id != video) {
      tokens.ids.push_back(id);
      continue;
    }
    if (pictures < picture_tokens.size()) {
      const std::int64_t count = picture_tokens[pictures];
      if (count <= 0) throw std::invalid_argument("a picture without visual tokens");
      const auto begin = static_cast<std::int64_t>(tokens.ids.size());
      tokens.ids.insert(tokens.ids.end(), static_cast<std::size_t>(count), id);
      tokens.pictures.push_back({id == image ? PartKind::image : PartKind::video, begin, begin + count});
    }
    ++pictures;
  }
  if (pictures != picture_tokens.size()) {
    throw std::invalid_argument("the conversation has " + std::to_string(pictures) +
                                " placeholders of pictures for " + std::to_string(picture_tokens.size()) +
                                " pictures");
  }
  return tokens;
}

void require_chat_tokens(const Tokenizer& tokenizer, const ChatFormat& format, const ModelConfig& config) {
  tokenizer.require_added(format.turn_begin);
  tokenizer.require_added(format.turn_end);
  tokenizer.require_added(format.image, config.image_token_id);
  tokenizer.require_added(format.video, config.video_token_id);
  tokenizer.require_added(format.picture_begin, config.vision_start_token_id);
  tokenizer.require_added(format.picture_end, config.vision_end_token_id);
}

std::string ChatTemplate::warning() const {
  if (known || file.empty()) return {};
  return file.string() + ": this chat template is not the published one of " + family +
         "; conversations are written in the published format all the same";
}

ChatTemplate read_chat_template(const std::filesystem::path& folder, const ChatFormat& format) {
  const auto found = [&](const std::filesystem::path& file, std::string_view text) {
    return ChatTemplate{file, normalized(text) == format.published, std::string(format.family)};
  };
  if (const auto file = folder / "chat_template.jinja"; is_there(file)) {
    return found(file, read_text_file(file));
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    const auto file = folder / name;
    if (!is_there(file)) continue;
    const Json root = read_json_file(file);
    if (const Json* text = template_in(root); text != nullptr) {
      return found(file, text->get_ref<const std::string&>());
    }
  }
  return {};
}

}  // namespace vigil::model
