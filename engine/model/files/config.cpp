#include "engine/model/files/config.h"

#include <numeric>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

// Bounds that no model comes near: products of two sizes stay far from the end of 64 bits.
constexpr std::int64_t kMostWidth = 1 << 20;
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostIds = 1 << 24;

int positive(const JsonObject& from, std::string_view key, std::int64_t most,
             std::optional<std::int64_t> otherwise = {}) {
  return static_cast<int>(from.integer(key, 1, most, otherwise));
}

/// The engine computes SiLU where transformers looks the name up; the two spellings mean the same function.
std::string activation(const JsonObject& from) {
  const std::string name = from.string("hidden_act", "silu");
  if (name != "silu" && name != "swish")
    from.fail("hidden_act", in_quotes(name) + " is not supported, silu is");
  return "silu";
}

void require_divides(const JsonObject& from, std::string_view key, int value, std::string_view divisor_key,
                     int divisor) {
  if (value % divisor != 0) {
    from.fail(key, std::to_string(value) + " is not divisible by " + std::string(divisor_key) + " " +
                       std::to_string(divisor));
  }
}

/// Keys that are left out have the defaults of transformers' Qwen2_5_VLVisionConfig: the published 32B folder
/// relies on them.
VisionConfig read_vision(const JsonObject& from) {
  VisionConfig vision;
  vision.depth = positive(from, "depth", kMostLayers, 32);
  vision.hidden_size = positive(from, "hidden_size", kMostWidth, 3584);
  vision.intermediate_size = positive(from, "intermediate_size", kMostWidth, 3420);
  vision.num_heads = positive(from, "num_heads", kMostWidth, 16);
  vision.in_channels = positive(from, from.has("in_channels") ? "in_channels" : "in_chans", 64, 3);
  vision.patch_size = positive(from, "patch_size", 1024, 14);
  vision.temporal_patch_size = positive(from, "temporal_patch_size", 64, 2);
  vision.spatial_merge_size = positive(from, "spatial_merge_size", 64, 2);
  vision.window_size = positive(from, "window_size", kMostWidth, 112);
  vision.out_hidden_size = positive(from, "out_hidden_size", kMostWidth, 3584);
  vision.tokens_per_second = static_cast<float>(from.number("tokens_per_second", 1e-3, 1e4, 4));
  vision.hidden_act = activation(from);
  for (const std::int64_t block :
       from.integers("fullatt_block_indexes", 0, kMostLayers, std::vector<std::int64_t>{7, 15, 23, 31})) {
    vision.fullatt_block_indexes.push_back(static_cast<int>(block));
  }
  if (const auto rope = from.optional_object("rope_parameters");
      rope && rope->number("rope_theta", 0, 1e15, 1e4) != 1e4) {
    rope->fail("rope_theta", "only 10000 is supported");
  }
  if (vision.in_channels != 3) from.fail("in_channels", "only 3 (RGB) is supported");
  require_divides(from, "hidden_size", vision.hidden_size, "num_heads", vision.num_heads);
  if (vision.head_dim() % 4 != 0) {
    from.fail("num_heads", "the head width " + std::to_string(vision.head_dim()) +
                               " is not divisible by 4, as the rotary embedding of rows and columns needs");
  }
  const int group = vision.patch_size * vision.spatial_merge_size;
  if (vision.window_size < group) {
    from.fail("window_size", std::to_string(vision.window_size) +
                                 " pixels is less than one group of patches, " + std::to_string(group));
  }
  return vision;
}

/// transformers 4 writes `rope_theta` and `rope_scaling` side by side, transformers 5 `rope_parameters`.
void read_rope(const JsonObject& from, TextConfig& text) {
  const char* key = from.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  const auto rope = from.optional_object(key);
  std::vector<std::int64_t> section = {16, 24, 24};
  double theta = from.number("rope_theta", 1, 1e15, 1e6);
  if (rope) {
    const char* type_key = rope->has("rope_type") ? "rope_type" : "type";
    const std::string type = rope->string(type_key, "default");
    if (type != "default" && type != "mrope") {
      rope->fail(type_key, in_quotes(type) + " is not supported, mrope and default are");
    }
    theta = rope->number("rope_theta", 1, 1e15, theta);
    section = rope->integers("mrope_section", 0, kMostWidth, section);
    if (section.size() != 3) rope->fail("mrope_section", "three numbers were expected");
  }
  for (std::size_t axis = 0; axis < 3; ++axis) text.mrope_section[axis] = static_cast<int>(section[axis]);
  text.rope_theta = theta;
  const auto sum = std::accumulate(section.begin(), section.end(), std::int64_t{0});
  if (2 * sum != text.head_dim) {
    from.fail(key, "mrope_section adds up to " + std::to_string(sum) + ", half of the head width is " +
                       std::to_string(text.head_dim / 2));
  }
}

TextConfig read_text(const JsonObject& from) {
  TextConfig text;
  text.hidden_size = positive(from, "hidden_size", kMostWidth);
  text.intermediate_size = positive(from, "intermediate_size", kMostWidth);
  text.num_hidden_layers = positive(from, "num_hidden_layers", kMostLayers);
  text.num_attention_heads = positive(from, "num_attention_heads", kMostWidth);
  text.num_key_value_heads = positive(from, "num_key_value_heads", kMostWidth, text.num_attention_heads);
  text.vocab_size = positive(from, "vocab_size", kMostIds);
  text.max_position_embeddings = from.integer("max_position_embeddings", 1, std::int64_t{1} << 40U, 32768);
  text.rms_norm_eps = static_cast<float>(from.number("rms_norm_eps", 0, 1, 1e-5));
  text.hidden_act = activation(from);
  require_divides(from, "hidden_size", text.hidden_size, "num_attention_heads", text.num_attention_heads);
  require_divides(from, "num_attention_heads", text.num_attention_heads, "num_key_value_heads",
                  text.num_key_value_heads);
  text.head_dim = text.hidden_size / text.num_attention_heads;
  if (from.integer("head_dim", 1, kMostWidth, text.head_dim) != text.head_dim) {
    from.fail("head_dim", "differs from hidden_size / num_attention_heads, " + std::to_string(text.head_dim));
  }
  if (text.head_dim % 2 != 0) from.fail("num_attention_heads", "the head width is odd");
  if (from.boolean("use_sliding_window", false)) {
    from.fail("use_sliding_window", "attention within a sliding window of text is not supported");
  }
  if (const Json* layers = from.find("layer_types"); layers != nullptr) {
    for (const Json& layer : *layers) {
      if (layer != "full_attention") from.fail("layer_types", "only full_attention is supported");
    }
  }
  read_rope(from, text);
  return text;
}

std::string read_dtype(const JsonObject& top, const JsonObject& text) {
  const JsonObject& from = top.has("torch_dtype") || top.has("dtype") ? top : text;
  const char* key = from.has("dtype") ? "dtype" : "torch_dtype";
  std::string dtype = from.string(key, "float32");
  if (dtype.starts_with("torch.")) dtype.erase(0, 6);
  if (dtype != "bfloat16" && dtype != "float16" && dtype != "float32") {
    from.fail(key, in_quotes(dtype) + " is not supported; bfloat16, float16 and float32 are");
  }
  return dtype;
}

std::int32_t token_id(const JsonObject& from, std::string_view key, std::int64_t otherwise, int vocab_size) {
  const std::int64_t id = from.integer(key, 0, kMostIds, otherwise);
  if (id >= vocab_size) {
    from.fail(key, std::to_string(id) + " is beyond vocab_size " + std::to_string(vocab_size));
  }
  return static_cast<std::int32_t>(id);
}

}  // namespace

ModelConfig parse_config(std::string_view json, const std::string& name) {
  const Json root = parse_json(json, name);
  const JsonObject top(root, name);
  const std::string type = top.string("model_type");
  if (type != "qwen2_5_vl") {
    top.fail("model_type", in_quotes(type) + " is an unknown architecture; qwen2_5_vl is supported");
  }
  if (top.has("quantization_config")) top.fail("quantization_config", "quantised weights are not supported");

  ModelConfig config;
  const JsonObject text = top.has("text_config") ? top.object("text_config") : top;
  const Json nothing = Json::object();
  config.text = read_text(text);
  config.text.tie_word_embeddings =
      top.boolean("tie_word_embeddings", false) || text.boolean("tie_word_embeddings", false);
  config.vision = read_vision(top.has("vision_config") ? top.object("vision_config")
                                                       : JsonObject(nothing, name, "vision_config"));
  if (config.vision.out_hidden_size != config.text.hidden_size) {
    top.fail("vision_config", "out_hidden_size " + std::to_string(config.vision.out_hidden_size) +
                                  " differs from the decoder's hidden_size " +
                                  std::to_string(config.text.hidden_size));
  }
  config.torch_dtype = read_dtype(top, text);
  config.image_token_id = token_id(top, "image_token_id", 151655, config.text.vocab_size);
  config.video_token_id = token_id(top, "video_token_id", 151656, config.text.vocab_size);
  config.vision_start_token_id = token_id(top, "vision_start_token_id", 151652, config.text.vocab_size);
  config.vision_end_token_id = token_id(top, "vision_end_token_id", 151653, config.text.vocab_size);
  return config;
}

ModelConfig read_config(const std::filesystem::path& folder) {
  return read_config_file(folder / "config.json");
}

ModelConfig read_config_file(const std::filesystem::path& file) {
  return parse_config(read_text_file(file, std::size_t{16} << 20U), file.string());
}

}  // namespace vigil::model
