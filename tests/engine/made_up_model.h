// A small model with random weights whose heads several devices can share.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "engine/model/model_folder.h"
#include "tests/engine/model/support.h"

namespace vigil::stream::testing {

/// Six KV heads; MLP and vocabulary are divisible by nothing.
inline std::shared_ptr<const model::ModelFolder> made_up_model(int layers = 3) {
  constexpr const char* kShape = R"({
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
    "hidden_size": 240, "intermediate_size": 331, "num_hidden_layers": 3, "num_attention_heads": 12,
    "num_key_value_heads": 6, "vocab_size": 2053, "rms_norm_eps": 1e-6, "rope_theta": 50.0, "hidden_act": "silu",
    "max_position_embeddings": 8192, "tie_word_embeddings": false, "torch_dtype": "float32",
    "image_token_id": 2046, "video_token_id": 2047, "vision_start_token_id": 2044, "vision_end_token_id": 2045,
    "rope_scaling": {"type": "mrope", "mrope_section": [2, 5, 3]},
    "vision_config": {"depth": 2, "hidden_act": "silu", "hidden_size": 80, "intermediate_size": 130, "num_heads": 4,
      "in_chans": 3, "out_hidden_size": 240, "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
      "fullatt_block_indexes": [1], "tokens_per_second": 2, "temporal_patch_size": 2}})";
  const model::testing::ScratchFolder scratch;
  std::string shape = kShape;
  shape.replace(shape.find("layers\": 3") + 9, 1, std::to_string(layers));
  scratch.write("config.json", shape);
  return model::ModelFolder::made_up(scratch.path() / "config.json",
                                     std::filesystem::path(VIGIL_SOURCE_DIR) / "models/demo", 5);
}

}  // namespace vigil::stream::testing
