// What a model folder says about how its answers are generated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/model/language/sampler.h"

namespace vigil::model {

/// `generation_config.json`; what it leaves out has transformers' defaults.
struct GenerationConfig {
  /// Tokens that end an answer; may be empty.
  std::vector<std::int32_t> end_token_ids;
  /// -1 if the file has none.
  std::int32_t pad_token_id = -1;
  bool do_sample = false;
  float temperature = 1;
  int top_k = 50;
  float top_p = 1;
  float repetition_penalty = 1;

  bool ends(std::int32_t id) const;
  /// The model's own way to choose tokens: `do_sample` off is temperature 0.
  Sampling sampling() const;
};

/// Reads `folder/generation_config.json`. Where it is missing, or names no end token, that of `config.json`
/// counts. Throws ModelError naming the file and the key.
GenerationConfig read_generation_config(const std::filesystem::path& folder);

}  // namespace vigil::model
