// The shape of a model, as `config.json` of a Hugging Face folder tells it. Nothing about a particular size
// is fixed here.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace vigil::model {

/// The vision tower (`vision_config`).
struct VisionConfig {
  int depth = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_heads = 0;
  int in_channels = 3;
  int patch_size = 14;
  int temporal_patch_size = 2;
  /// Side of the square of patches that the merger folds into one token.
  int spatial_merge_size = 2;
  /// Side of an attention window, in pixels.
  int window_size = 112;
  /// Blocks that attend over the whole frame; the others within windows.
  std::vector<int> fullatt_block_indexes;
  /// Width of the merged tokens: the decoder's `hidden_size`.
  int out_hidden_size = 0;
  /// Temporal positions a second of video.
  float tokens_per_second = 2;
  std::string hidden_act = "silu";

  int head_dim() const { return hidden_size / num_heads; }
};

/// The decoder (`text_config` as transformers 5 writes it, or the top level of `config.json` in the layout of
/// transformers 4).
struct TextConfig {
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  /// `hidden_size / num_attention_heads`.
  int head_dim = 0;
  int vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  float rms_norm_eps = 1e-6F;
  double rope_theta = 1e6;
  /// Rotary frequencies given to the temporal, height and width axes; the sum is head_dim / 2.
  std::array<int, 3> mrope_section = {0, 0, 0};
  bool tie_word_embeddings = false;
  std::string hidden_act = "silu";
};

struct ModelConfig {
  TextConfig text;
  VisionConfig vision;
  /// The weights' element type as the file states it ("bfloat16", "float16" or "float32"); each tensor has
  /// its own all the same.
  std::string torch_dtype;
  std::int32_t image_token_id = -1;
  std::int32_t video_token_id = -1;
  std::int32_t vision_start_token_id = -1;
  std::int32_t vision_end_token_id = -1;
};

/// Reads `folder/config.json`. Throws ModelError, naming the file and the key, for an architecture other than
/// Qwen2.5-VL, a missing or ill-typed key, and sizes that do not fit each other (heads that do not divide the
/// width, say).
ModelConfig read_config(const std::filesystem::path& folder);

/// The same of a file of any name.
ModelConfig read_config_file(const std::filesystem::path& file);

/// The same from text; `name` stands in messages. Keys that transformers fills with defaults may be absent;
/// the decoder's sizes may not.
ModelConfig parse_config(std::string_view json, const std::string& name);

}  // namespace vigil::model
