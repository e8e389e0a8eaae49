#include "engine/window/cached_model.h"

#include <utility>

namespace vigil::window {
namespace {

kv::PageLayout layout_of(const model::TextConfig& text, const CachedModelOptions& options) {
  return {text.num_hidden_layers, text.num_key_value_heads, text.head_dim, options.page_tokens,
          options.compute};
}

/// Without the sum that could overflow.
std::int64_t pages_of(const CachedModelOptions& options) {
  return options.kv_tokens / options.page_tokens + (options.kv_tokens % options.page_tokens != 0 ? 1 : 0);
}

}  // namespace

CachedModel::CachedModel(std::shared_ptr<const model::ModelFolder> model_folder,
                         const CachedModelOptions& options)
    : folder(std::move(model_folder)),
      memory(options.memory),
      decoder(folder->config.text, folder->parameters(memory, options.compute, options.quantization)),
      pages(memory, layout_of(folder->config.text, options), pages_of(options)),
      prompts(*folder) {}

}  // namespace vigil::window
