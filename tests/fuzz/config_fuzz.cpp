// Any bytes as config.json: either one line of error, or sizes that fit each other.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "engine/model/families/family.h"
#include "engine/model/files/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vigil::model;
  try {
    const ModelConfig config = parse_config({reinterpret_cast<const char*>(data), size}, "fuzz");
    const TextConfig& text = config.text;
    const bool fits =
        text.head_dim * text.num_attention_heads == text.hidden_size &&
        text.num_attention_heads % text.num_key_value_heads == 0 &&
        2 * (text.mrope_section[0] + text.mrope_section[1] + text.mrope_section[2]) == text.head_dim &&
        config.vision.head_dim() * config.vision.num_heads == config.vision.hidden_size &&
        config.vision.out_hidden_size == text.hidden_size && config.video_token_id >= 0 &&
        config.video_token_id < text.vocab_size;
    if (!fits) std::abort();
  } catch (const ModelError& error) {
    if (std::strchr(error.what(), '\n') != nullptr || std::strlen(error.what()) > 2000) std::abort();
  }
  return 0;
}
