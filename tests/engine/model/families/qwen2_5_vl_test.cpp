#include "engine/model/families/qwen2_5_vl.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/expected_tensors.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

/// The configuration of Qwen2.5-VL-7B-Instruct in its published layout (transformers 4).
Json published() {
  return Json::parse(R"({
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151645, "vision_start_token_id": 151652, "vision_end_token_id": 151653,
    "vision_token_id": 151654, "image_token_id": 151655, "video_token_id": 151656, "hidden_act": "silu",
    "hidden_size": 3584, "initializer_range": 0.02, "intermediate_size": 18944, "max_position_embeddings": 128000,
    "max_window_layers": 28, "model_type": "qwen2_5_vl", "num_attention_heads": 28, "num_hidden_layers": 28,
    "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.41.2", "use_cache": true,
    "use_sliding_window": false,
    "vision_config": {"depth": 32, "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420,
      "num_heads": 16, "in_chans": 3, "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2,
      "spatial_patch_size": 14, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
      "tokens_per_second": 2, "temporal_patch_size": 2},
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "vocab_size": 152064})");
}

/// What `save_pretrained` of transformers 5.17 wrote for a small model.
Json nested() {
  return Json::parse(R"({"architectures": ["Qwen2_5_VLForConditionalGeneration"], "dtype": "bfloat16",
    "image_token_id": 10, "model_type": "qwen2_5_vl",
    "text_config": {"attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
      "hidden_size": 48, "initializer_range": 0.02, "intermediate_size": 96,
      "layer_types": ["full_attention", "full_attention"], "max_position_embeddings": 32768,
      "max_window_layers": 2, "model_type": "qwen2_5_vl_text", "num_attention_heads": 6, "num_hidden_layers": 2,
      "num_key_value_heads": 2, "pad_token_id": null, "rms_norm_eps": 1e-05,
      "rope_parameters": {"mrope_section": [1, 1, 2], "rope_theta": 500000.0, "rope_type": "default"},
      "sliding_window": null, "use_cache": true, "use_sliding_window": false, "vocab_size": 512},
    "tie_word_embeddings": true, "transformers_version": "5.17.0", "video_token_id": 11,
    "vision_config": {"depth": 3, "fullatt_block_indexes": [1, 2], "hidden_act": "silu", "hidden_size": 32,
      "in_channels": 3, "initializer_range": 0.02, "intermediate_size": 64, "model_type": "qwen2_5_vl_vision",
      "num_heads": 2, "out_hidden_size": 48, "patch_size": 14,
      "rope_parameters": {"rope_theta": 10000.0, "rope_type": "axial"}, "spatial_merge_size": 2,
      "temporal_patch_size": 2, "tokens_per_second": 3, "window_size": 56},
    "vision_end_token_id": 13, "vision_start_token_id": 12})");
}

ModelConfig parse(const Json& json) {
  return parse_config(json.dump(), "config.json");
}

/// The line for the published configuration with a change (RFC 7396).
std::string error_with(const Json& patch) {
  Json json = published();
  json.merge_patch(patch);
  return error_of([&] { parse(json); });
}

TEST(ModelConfig, ReadsThePublishedLayout) {
  const ModelConfig config = parse(published());
  EXPECT_EQ(config.text.hidden_size, 3584);
  EXPECT_EQ(config.text.intermediate_size, 18944);
  EXPECT_EQ(config.text.num_hidden_layers, 28);
  EXPECT_EQ(config.text.num_attention_heads, 28);
  EXPECT_EQ(config.text.num_key_value_heads, 4);
  EXPECT_EQ(config.text.head_dim, 128);
  EXPECT_EQ(config.text.vocab_size, 152064);
  EXPECT_EQ(config.text.max_position_embeddings, 128000);
  EXPECT_FLOAT_EQ(config.text.rms_norm_eps, 1e-6F);
  EXPECT_EQ(config.text.rope_theta, 1e6);
  EXPECT_THAT(config.text.mrope_section, ElementsAre(16, 24, 24));
  EXPECT_FALSE(config.text.tie_word_embeddings);
  EXPECT_EQ(config.vision.depth, 32);
  EXPECT_EQ(config.vision.hidden_size, 1280);
  EXPECT_EQ(config.vision.intermediate_size, 3420);
  EXPECT_EQ(config.vision.head_dim(), 80);
  EXPECT_EQ(config.vision.window_size, 112);
  EXPECT_THAT(config.vision.fullatt_block_indexes, ElementsAre(7, 15, 23, 31));
  EXPECT_EQ(config.vision.tokens_per_second, 2);
  EXPECT_EQ(config.torch_dtype, "bfloat16");
  EXPECT_EQ(config.image_token_id, 151655);
  EXPECT_EQ(config.video_token_id, 151656);
  EXPECT_EQ(config.vision_start_token_id, 151652);
  EXPECT_EQ(config.vision_end_token_id, 151653);
}

TEST(ModelConfig, ReadsTheLayoutOfTransformers5) {
  const ModelConfig config = parse(nested());
  EXPECT_EQ(config.text.hidden_size, 48);
  EXPECT_EQ(config.text.head_dim, 8);
  EXPECT_EQ(config.text.rope_theta, 5e5);
  EXPECT_FLOAT_EQ(config.text.rms_norm_eps, 1e-5F);
  EXPECT_THAT(config.text.mrope_section, ElementsAre(1, 1, 2));
  EXPECT_TRUE(config.text.tie_word_embeddings);
  EXPECT_EQ(config.vision.depth, 3);
  EXPECT_EQ(config.vision.tokens_per_second, 3);
  EXPECT_EQ(config.torch_dtype, "bfloat16");
  EXPECT_EQ(config.video_token_id, 11);
}

TEST(ModelConfig, FindsWhatMovedBetweenTheLayouts) {
  Json json = nested();
  json.erase("tie_word_embeddings");
  EXPECT_FALSE(parse(json).text.tie_word_embeddings);
  json["text_config"]["tie_word_embeddings"] = true;
  EXPECT_TRUE(parse(json).text.tie_word_embeddings);
  json.erase("dtype");
  json["text_config"]["dtype"] = "float16";
  EXPECT_EQ(parse(json).torch_dtype, "float16");
  json["torch_dtype"] = "torch.float32";
  EXPECT_EQ(parse(json).torch_dtype, "float32");
  // Both spellings of the type, as the published 32B folder has them.
  json = published();
  json["rope_scaling"] = {{"mrope_section", {16, 24, 24}}, {"rope_type", "default"}, {"type", "default"}};
  EXPECT_THAT(parse(json).text.mrope_section, ElementsAre(16, 24, 24));
}

/// The published 32B folder leaves most of vision_config out.
TEST(ModelConfig, HasTheDefaultsOfTransformers) {
  Json json = published();
  json["vision_config"] = {{"hidden_size", 1280}, {"in_chans", 3}, {"spatial_patch_size", 14}};
  for (const char* key :
       {"rms_norm_eps", "rope_theta", "rope_scaling", "max_position_embeddings", "torch_dtype"})
    json.erase(key);
  const ModelConfig config = parse(json);
  EXPECT_EQ(config.vision.depth, 32);
  EXPECT_EQ(config.vision.intermediate_size, 3420);
  EXPECT_EQ(config.vision.num_heads, 16);
  EXPECT_EQ(config.vision.out_hidden_size, 3584);
  EXPECT_EQ(config.vision.tokens_per_second, 4);
  EXPECT_THAT(config.vision.fullatt_block_indexes, ElementsAre(7, 15, 23, 31));
  EXPECT_FLOAT_EQ(config.text.rms_norm_eps, 1e-5F);
  EXPECT_EQ(config.text.rope_theta, 1e6);
  EXPECT_THAT(config.text.mrope_section, ElementsAre(16, 24, 24));
  EXPECT_EQ(config.text.max_position_embeddings, 32768);
  EXPECT_EQ(config.torch_dtype, "float32");
}

TEST(ModelConfig, RefusesWhatTheEngineDoesNotCompute) {
  EXPECT_EQ(error_with({{"model_type", "llama"}}),
            "config.json: model_type: 'llama' is an unknown architecture; qwen2_5_vl is supported");
  EXPECT_EQ(error_with({{"model_type", nullptr}}), "config.json: model_type: missing");
  EXPECT_THAT(error_with({{"quantization_config", {{"quant_method", "awq"}}}}),
              HasSubstr("quantised weights"));
  EXPECT_THAT(error_with({{"use_sliding_window", true}}), HasSubstr("use_sliding_window"));
  EXPECT_THAT(error_with({{"layer_types", {"full_attention", "sliding_attention"}}}),
              HasSubstr("layer_types"));
  EXPECT_THAT(error_with({{"hidden_act", "gelu"}}), HasSubstr("hidden_act: 'gelu' is not supported"));
  EXPECT_THAT(error_with({{"rope_scaling", {{"type", "yarn"}}}}),
              HasSubstr("rope_scaling.type: 'yarn' is not supported"));
  EXPECT_THAT(error_with({{"torch_dtype", "float8_e4m3fn"}}), HasSubstr("torch_dtype: 'float8_e4m3fn'"));
  EXPECT_THAT(error_with({{"vision_config", {{"in_chans", 4}}}}), HasSubstr("only 3 (RGB)"));
  EXPECT_THAT(error_with({{"vision_config", {{"rope_parameters", {{"rope_theta", 5000}}}}}}),
              HasSubstr("rope_parameters.rope_theta"));
}

TEST(ModelConfig, RefusesSizesThatDoNotFitEachOther) {
  EXPECT_EQ(error_with({{"num_attention_heads", 27}}),
            "config.json: hidden_size: 3584 is not divisible by num_attention_heads 27");
  EXPECT_THAT(error_with({{"num_key_value_heads", 5}}),
              HasSubstr("num_attention_heads: 28 is not divisible by num_key_value_heads 5"));
  EXPECT_THAT(error_with({{"head_dim", 64}}), HasSubstr("head_dim"));
  EXPECT_THAT(error_with({{"rope_scaling", {{"mrope_section", {16, 24, 23}}}}}),
              HasSubstr("adds up to 63, half of the head width is 64"));
  EXPECT_THAT(error_with({{"rope_scaling", {{"mrope_section", {32, 32}}}}}), HasSubstr("three numbers"));
  EXPECT_THAT(error_with({{"vision_config", {{"out_hidden_size", 2048}}}}),
              HasSubstr("out_hidden_size 2048 differs from the decoder's hidden_size 3584"));
  EXPECT_THAT(error_with({{"vision_config", {{"num_heads", 7}}}}),
              HasSubstr("vision_config.hidden_size: 1280 is not divisible by num_heads 7"));
  EXPECT_THAT(error_with({{"vision_config", {{"window_size", 20}}}}), HasSubstr("vision_config.window_size"));
  EXPECT_EQ(error_with({{"vocab_size", 151656}}),
            "config.json: video_token_id: 151656 is beyond vocab_size 151656");
}

TEST(ModelConfig, HasTheTraitsOfItsFamily) {
  const ModelConfig config = parse(published());
  EXPECT_EQ(config.model_type, "qwen2_5_vl");
  EXPECT_EQ(&family_of(config), &kQwen25Vl);
  EXPECT_EQ(config.vision.traits.rope_theta, 10000);
  EXPECT_EQ(config.vision.traits.names.blocks, "model.visual.blocks.");
  EXPECT_EQ(config.text.traits.names.layers, "model.language_model.layers.");
  EXPECT_EQ(error_of([] { family_of(ModelConfig{}); }),
            "config.json: model_type: '' is an unknown architecture; qwen2_5_vl is supported");
}

// Tower and decoder ask for what is expected (check_test.cpp); here, that traits say it.
TEST(ModelConfig, TraitsSayWhichTensorsAreExpected) {
  ModelConfig config = parse(published());
  const auto expects = [&](const std::string& name) {
    const std::vector<ExpectedTensor> tensors = expected_text_tensors(config.text);
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const ExpectedTensor& tensor) { return tensor.name == name; });
  };
  EXPECT_TRUE(expects("model.language_model.layers.3.self_attn.v_proj.bias"));
  EXPECT_FALSE(expects("model.language_model.layers.3.self_attn.o_proj.bias"));
  config.text.traits.qkv_bias = false;
  config.text.traits.names.layers = "language_model.blocks.";
  EXPECT_TRUE(expects("language_model.blocks.3.self_attn.v_proj.weight"));
  EXPECT_FALSE(expects("language_model.blocks.3.self_attn.v_proj.bias"));
}

TEST(ModelConfig, NamesMissingAndIllTypedKeys) {
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}) {
    EXPECT_EQ(error_with({{key, nullptr}}), "config.json: " + std::string(key) + ": missing");
    EXPECT_THAT(error_with({{key, "x"}}), HasSubstr(std::string(key) + ": an integer was expected"));
    EXPECT_THAT(error_with({{key, 0}}), HasSubstr(std::string(key) + ": 0 is not between"));
    EXPECT_THAT(error_with({{key, 1e30}}), HasSubstr(std::string(key) + ": an integer was expected"));
    EXPECT_THAT(error_with({{key, std::int64_t{1} << 40}}), HasSubstr("is not between"));
  }
  EXPECT_THAT(error_with({{"vision_config", 3}}), HasSubstr("vision_config: an object was expected"));
  EXPECT_THAT(error_with({{"vision_config", {{"fullatt_block_indexes", {-1}}}}}),
              HasSubstr("vision_config.fullatt_block_indexes"));
  EXPECT_THAT(error_with({{"rope_scaling", {{"mrope_section", {-16, 40, 40}}}}}),
              HasSubstr("rope_scaling.mrope_section"));
  EXPECT_THAT(error_of([] { parse_config("[]", "config.json"); }),
              HasSubstr("an object was expected, this is array"));
}

TEST(ModelConfig, NamesTheFile) {
  const testing::ScratchFolder folder;
  EXPECT_THAT(error_of([&] { read_config(folder.path()); }), HasSubstr("config.json: no such file"));
  folder.write("config.json", published().dump());
  EXPECT_EQ(read_config(folder.path()).text.num_hidden_layers, 28);
}

}  // namespace
}  // namespace vigil::model
