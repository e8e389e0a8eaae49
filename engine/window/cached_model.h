// A language model and the cache of its keys and values: what prefill and generation share.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/kv/page_pool.h"
#include "engine/model/decoder.h"
#include "engine/model/model_folder.h"
#include "engine/window/prompt.h"

namespace vigil::window {

struct CachedModelOptions {
  /// Where the weights and the pages lie.
  kernels::Stream memory = kernels::Stream::cpu();
  kernels::DType compute = kernels::DType::f32;
  model::Quantization quantization = model::Quantization::none;
  /// Tokens that the cache has room for, over all windows and questions that are in it at once.
  std::int64_t kv_tokens = 16384;
  int page_tokens = 64;
};

/// Shared by its users on several threads: all but `pages` is immutable, and the pages are counted safely.
struct CachedModel {
  /// Throws ModelError for weights that do not fit, std::invalid_argument for a cache without room.
  CachedModel(std::shared_ptr<const model::ModelFolder> model_folder, const CachedModelOptions& options);

  /// Pages for so many tokens.
  std::int64_t pages_for(std::int64_t tokens) const {
    const std::int64_t page_tokens = pages.layout().page_tokens;
    return (tokens + page_tokens - 1) / page_tokens;
  }

  std::shared_ptr<const model::ModelFolder> folder;
  /// Where the weights and the pages lie.
  kernels::Stream memory;
  model::Decoder decoder;
  kv::PagePool pages;
  PromptBuilder prompts;
};

}  // namespace vigil::window
