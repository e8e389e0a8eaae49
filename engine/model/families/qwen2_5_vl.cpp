#include "engine/model/families/qwen2_5_vl.h"

#include <array>
#include <numeric>
#include <optional>
#include <vector>

namespace vigil::model {
namespace {

// Bounds that no model comes near: products of two sizes stay far from the end of 64 bits.
constexpr std::int64_t kMostWidth = 1 << 20;
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostIds = 1 << 24;

/// Fixed in the code of the published tower rather than in its configuration, as is the epsilon of its norms.
constexpr float kVisionRopeTheta = 10000;

int positive(const JsonObject& from, std::string_view key, std::int64_t most,
             std::optional<std::int64_t> otherwise = {}) {
  return static_cast<int>(from.integer(key, 1, most, otherwise));
}

/// transformers looks the name up; the two spellings mean the function that the traits have.
void require_silu(const JsonObject& from) {
  const std::string name = from.string("hidden_act", "silu");
  if (name != "silu" && name != "swish")
    from.fail("hidden_act", in_quotes(name) + " is not supported, silu is");
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
  require_silu(from);
  for (const std::int64_t block :
       from.integers("fullatt_block_indexes", 0, kMostLayers, std::vector<std::int64_t>{7, 15, 23, 31})) {
    vision.fullatt_block_indexes.push_back(static_cast<int>(block));
  }
  if (const auto rope = from.optional_object("rope_parameters");
      rope && rope->number("rope_theta", 0, 1e15, kVisionRopeTheta) != kVisionRopeTheta) {
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
  require_silu(from);
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

ModelConfig read(const JsonObject& top) {
  if (top.has("quantization_config")) top.fail("quantization_config", "quantised weights are not supported");

  ModelConfig config;
  const JsonObject text = top.has("text_config") ? top.object("text_config") : top;
  const Json nothing = Json::object();
  config.text = read_text(text);
  config.text.tie_word_embeddings =
      top.boolean("tie_word_embeddings", false) || text.boolean("tie_word_embeddings", false);
  config.vision = read_vision(top.has("vision_config") ? top.object("vision_config")
                                                       : JsonObject(nothing, top.file(), "vision_config"));
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

constexpr std::array<NamePrefix, 2> kPrefixes = {
    {{"model.visual.", "visual."}, {"model.language_model.", "model."}}};

/// The template of the folders as published (Qwen2-VL has the same), blanks and quotes within tags as
/// ChatFormat says. `add_vision_id` is off unless a caller of transformers asks for it.
constexpr std::string_view kPublished =
    "{%set image_count=namespace(value=0)%}{%set video_count=namespace(value=0)%}{%for message in messages%}"
    "{%if loop.first and message['role']!='system'%}<|im_start|>system\nYou are a helpful "
    "assistant.<|im_end|>\n"
    "{%endif%}<|im_start|>{{message['role']}}\n{%if message['content'] is "
    "string%}{{message['content']}}<|im_end|>\n"
    "{%else%}{%for content in message['content']%}"
    "{%if content['type']=='image' or 'image' in content or 'image_url' in content%}"
    "{%set image_count.value=image_count.value+1%}{%if add_vision_id%}Picture {{image_count.value}}: "
    "{%endif%}"
    "<|vision_start|><|image_pad|><|vision_end|>{%elif content['type']=='video' or 'video' in content%}"
    "{%set video_count.value=video_count.value+1%}{%if add_vision_id%}Video {{video_count.value}}: {%endif%}"
    "<|vision_start|><|video_pad|><|vision_end|>{%elif 'text' in "
    "content%}{{content['text']}}{%endif%}{%endfor%}"
    "<|im_end|>\n{%endif%}{%endfor%}{%if add_generation_prompt%}<|im_start|>assistant\n{%endif%}";

}  // namespace

// Whoever is initialised before it may read it.
constinit const Family kQwen25Vl = {
    .model_type = "qwen2_5_vl",
    .read = read,
    .prefixes = kPrefixes,
    .vision = {.names = {.patch_embed = "model.visual.patch_embed.proj",
                         .blocks = "model.visual.blocks.",
                         .norm1 = "norm1",
                         .norm2 = "norm2",
                         .qkv = "attn.qkv",
                         .proj = "attn.proj",
                         .gate = "mlp.gate_proj",
                         .up = "mlp.up_proj",
                         .down = "mlp.down_proj",
                         .merger_norm = "model.visual.merger.ln_q",
                         .merger_in = "model.visual.merger.mlp.0",
                         .merger_out = "model.visual.merger.mlp.2"},
               .activation = kernels::Activation::silu,
               .merger_activation = kernels::Activation::gelu,
               .norm_eps = 1e-6F,
               .rope_theta = kVisionRopeTheta},
    .text = {.names = {.embeddings = "model.language_model.embed_tokens",
                       .layers = "model.language_model.layers.",
                       .input_norm = "input_layernorm",
                       .attention_norm = "post_attention_layernorm",
                       .q = "self_attn.q_proj",
                       .k = "self_attn.k_proj",
                       .v = "self_attn.v_proj",
                       .o = "self_attn.o_proj",
                       .gate = "mlp.gate_proj",
                       .up = "mlp.up_proj",
                       .down = "mlp.down_proj",
                       .norm = "model.language_model.norm",
                       .head = "lm_head"},
             .activation = kernels::Activation::silu,
             .qkv_bias = true,
             .time_axes = kTimeAlone},
    .chat = {.family = "Qwen2.5-VL",
             .default_system = "You are a helpful assistant.",
             .turn_begin = "<|im_start|>",
             .turn_end = "<|im_end|>",
             .picture_begin = "<|vision_start|>",
             .picture_end = "<|vision_end|>",
             .image = "<|image_pad|>",
             .video = "<|video_pad|>",
             .published = kPublished},
};

}  // namespace vigil::model
