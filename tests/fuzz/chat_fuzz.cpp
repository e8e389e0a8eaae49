// Two readers by the first byte. 'j', 'c' and 't': any bytes as chat_template.jinja, chat_template.json or
// tokenizer_config.json of a folder, which are the published template or not, or one line of error. Else: any
// text, with placeholders of pictures or without, in a conversation with one picture: its visual tokens are
// where the ranges say, or the placeholders do not match.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/families/qwen2_5_vl.h"
#include "engine/model/files/error.h"
#include "engine/model/text/chat.h"
#include "tests/fuzz/model_files.h"

namespace {

using namespace vigil::model;
using vigil::testing::require;

void fuzz_template(const char* name, std::string_view bytes) {
  const vigil::testing::ModelFile file(name, bytes);
  const ChatTemplate read = read_chat_template(file.folder(), kQwen25Vl.chat);
  const std::string warning = read.warning();
  require(read.known || read.file.empty() || !warning.empty());
  require(warning.find('\n') == std::string::npos && warning.size() < 2000);
}

void fuzz_text(std::string_view text) {
  static const Tokenizer tokenizer = Tokenizer::open(VIGIL_SOURCE_DIR "/tests/golden/tokenizer");
  constexpr std::int64_t kTokens = 3;
  const std::vector<ChatMessage> messages = {
      {"user", {{PartKind::video, ""}, {PartKind::text, std::string(text)}}}};
  try {
    const std::vector<std::int64_t> counts = {kTokens};
    const ChatTokens tokens = tokenize_chat(tokenizer, kQwen25Vl.chat, messages, true, counts);
    require(tokens.pictures.size() == 1 && tokens.pictures[0].end - tokens.pictures[0].begin == kTokens);
    const std::int32_t video = tokenizer.find("<|video_pad|>");
    for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const bool within = at >= tokens.pictures[0].begin && at < tokens.pictures[0].end;
      require(tokens.ids[i] >= 0 && tokens.ids[i] < tokenizer.id_limit());
      require((tokens.ids[i] == video) == within);
    }
  } catch (const std::invalid_argument& error) {
    // Only a text that has a placeholder itself does not match.
    require(text.find("_pad|>") != std::string_view::npos);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0]) {
      case 'j':
        fuzz_template("chat_template.jinja", rest);
        break;
      case 'c':
        fuzz_template("chat_template.json", rest);
        break;
      case 't':
        fuzz_template("tokenizer_config.json", rest);
        break;
      default:
        fuzz_text(rest);
    }
  } catch (const ModelError& error) {
    vigil::testing::require_line(error);
  }
  return 0;
}
