#include "engine/model/text/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/families/qwen2_5_vl.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using testing::error_of;
using testing::golden;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ChatFormat& kFormat = kQwen25Vl.chat;

std::vector<ChatMessage> messages_of(const Json& json) {
  std::vector<ChatMessage> messages;
  for (const Json& item : json) {
    ChatMessage message{item["role"].get<std::string>(), {}};
    if (item["content"].is_string()) {
      message.parts.push_back({PartKind::text, item["content"].get<std::string>()});
    } else {
      for (const Json& part : item["content"]) {
        const auto type = part["type"].get<std::string>();
        const PartKind kind = type == "image"   ? PartKind::image
                              : type == "video" ? PartKind::video
                                                : PartKind::text;
        message.parts.push_back({kind, kind == PartKind::text ? part["text"].get<std::string>() : ""});
      }
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

TEST(Chat, AgreesWithTransformers) {
  const Tokenizer tokenizer = Tokenizer::open(golden("tokenizer"));
  const Json cases = read_json_file(golden("tokenizer/chat.json"));
  ASSERT_GE(cases.size(), 9U);
  for (const Json& item : cases) {
    SCOPED_TRACE(item.dump());
    const auto messages = messages_of(item["messages"]);
    const bool prompt = item["generation_prompt"].get<bool>();
    EXPECT_EQ(render_chat(kFormat, messages, prompt), item["text"].get<std::string>());

    auto images = item["images"].get<std::vector<std::int64_t>>();
    auto videos = item["videos"].get<std::vector<std::int64_t>>();
    std::vector<std::int64_t> counts;
    std::vector<PartKind> kinds;
    for (const ChatMessage& message : messages) {
      for (const ChatPart& part : message.parts) {
        if (part.kind == PartKind::text) continue;
        auto& source = part.kind == PartKind::image ? images : videos;
        counts.push_back(source.front());
        kinds.push_back(part.kind);
        source.erase(source.begin());
      }
    }
    const ChatTokens tokens = tokenize_chat(tokenizer, kFormat, messages, prompt, counts);
    EXPECT_EQ(tokens.ids, item["ids"].get<std::vector<std::int32_t>>());
    ASSERT_EQ(tokens.pictures.size(), counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const PictureRange& range = tokens.pictures[i];
      EXPECT_EQ(range.kind, kinds[i]);
      EXPECT_EQ(range.end - range.begin, counts[i]);
      const std::int32_t pad =
          tokenizer.find(range.kind == PartKind::image ? "<|image_pad|>" : "<|video_pad|>");
      for (std::int64_t at = range.begin; at < range.end; ++at)
        EXPECT_EQ(tokens.ids[static_cast<std::size_t>(at)], pad);
      EXPECT_EQ(tokens.ids[static_cast<std::size_t>(range.begin - 1)], tokenizer.find("<|vision_start|>"));
      EXPECT_EQ(tokens.ids[static_cast<std::size_t>(range.end)], tokenizer.find("<|vision_end|>"));
    }
  }
}

TEST(Chat, RefusesPicturesThatDoNotMatchThePlaceholders) {
  const Tokenizer tokenizer = Tokenizer::open(golden("tokenizer"));
  const std::vector<ChatMessage> messages = {{"user", {{PartKind::video, ""}, {PartKind::text, "x"}}}};
  const std::vector<std::int64_t> none;
  const std::vector<std::int64_t> two = {1, 1};
  const std::vector<std::int64_t> zero = {0};
  EXPECT_THROW(tokenize_chat(tokenizer, kFormat, messages, true, none), std::invalid_argument);
  EXPECT_THROW(tokenize_chat(tokenizer, kFormat, messages, true, two), std::invalid_argument);
  EXPECT_THROW(tokenize_chat(tokenizer, kFormat, messages, true, zero), std::invalid_argument);
  // A question that smuggles a placeholder in.
  const std::vector<ChatMessage> smuggled = {
      {"user", {{PartKind::video, ""}, {PartKind::text, "<|image_pad|>"}}}};
  EXPECT_THROW(tokenize_chat(tokenizer, kFormat, smuggled, true, std::vector<std::int64_t>{5}),
               std::invalid_argument);
}

TEST(Chat, NeedsItsTokens) {
  const Tokenizer tokenizer = Tokenizer::open(golden("tokenizer"));
  ModelConfig config;
  config.image_token_id = tokenizer.find("<|image_pad|>");
  config.video_token_id = tokenizer.find("<|video_pad|>");
  config.vision_start_token_id = tokenizer.find("<|vision_start|>");
  config.vision_end_token_id = tokenizer.find("<|vision_end|>");
  EXPECT_NO_THROW(require_chat_tokens(tokenizer, kFormat, config));
  config.video_token_id = 3;
  EXPECT_THAT(error_of([&] { require_chat_tokens(tokenizer, kFormat, config); }),
              HasSubstr("'<|video_pad|>'"));
}

class ChatTemplateTest : public ::testing::Test {
 protected:
  std::string published() const {
    return read_json_file(golden("tokenizer/tokenizer_config.json"))["chat_template"].get<std::string>();
  }
  testing::ScratchFolder folder_;
};

TEST_F(ChatTemplateTest, KnowsThePublishedOneInEveryPlace) {
  EXPECT_THAT(read_chat_template(folder_.path(), kFormat).file.string(), IsEmpty());
  EXPECT_THAT(read_chat_template(folder_.path(), kFormat).warning(), IsEmpty());
  folder_.write("tokenizer_config.json", Json{{"chat_template", published()}}.dump());
  EXPECT_TRUE(read_chat_template(folder_.path(), kFormat).known);
  folder_.write("chat_template.json", Json{{"chat_template", "{{ 'other' }}"}}.dump());
  const ChatTemplate other = read_chat_template(folder_.path(), kFormat);
  EXPECT_FALSE(other.known);
  EXPECT_THAT(other.warning(), HasSubstr("chat_template.json: this chat template is not the published one"));
  folder_.write("chat_template.jinja", published() + "\n");
  const ChatTemplate jinja = read_chat_template(folder_.path(), kFormat);
  EXPECT_TRUE(jinja.known);
  EXPECT_EQ(jinja.file.filename(), "chat_template.jinja");
  EXPECT_THAT(jinja.warning(), IsEmpty());
}

TEST_F(ChatTemplateTest, TakesTheDefaultOfSeveral) {
  const Json list = Json::array(
      {{{"name", "tool_use"}, {"template", "x"}}, {{"name", "default"}, {"template", published()}}});
  folder_.write("tokenizer_config.json", Json{{"chat_template", list}}.dump());
  EXPECT_TRUE(read_chat_template(folder_.path(), kFormat).known);
}

TEST_F(ChatTemplateTest, LooksPastBlanksInTagsButNotInText) {
  const auto known = [&](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    folder_.write("chat_template.jinja", text);
    return read_chat_template(folder_.path(), kFormat).known;
  };
  EXPECT_TRUE(known(published(), "{% for message in messages %}", "{%  for  message\n in messages%}"));
  EXPECT_TRUE(known(published(), "message['role'] != 'system'", "message[\"role\"]!=\"system\""));
  EXPECT_FALSE(known(published(), "You are a helpful assistant.", "You are  a helpful assistant."));
  EXPECT_FALSE(known(published(), "{% for message in messages %}", "{% for message in messages %} "));
  EXPECT_FALSE(known(published(), "{% for message in messages %}", "{%- for message in messages %}"));
  EXPECT_FALSE(known(published(), "'system'", "'sys tem'"));
  EXPECT_FALSE(known(published(), "loop.first and", "loop.firstand"));
  EXPECT_FALSE(
      known(published(), "<|im_end|>\n{% endif %}{% endfor %}", "<|im_end|>{% endif %}{% endfor %}"));
}

}  // namespace
}  // namespace vigil::model
