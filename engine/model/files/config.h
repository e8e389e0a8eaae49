// The shape of a model, as `config.json` of a Hugging Face folder tells it (families/family.h reads it).
// Nothing about a particular size is fixed here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/files/traits.h"

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
  /// Those of the family.
  VisionTraits traits;

  int head_dim() const { return hidden_size / num_heads; }
};

/// The decoder.
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
  /// Those of the family.
  TextTraits traits;
};

struct ModelConfig {
  /// Names the family.
  std::string model_type;
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

}  // namespace vigil::model
