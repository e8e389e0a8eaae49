#include "engine/run/cached_model.h"

#include <utility>

#include "engine/run/rank_team.h"

namespace vigil::run {
namespace {

kv::PageLayout layout_of(const model::TextConfig& config, const model::DecoderPart& part,
                         const CachedModelOptions& options) {
  return {config.num_hidden_layers, part.kv_heads, config.head_dim, options.page_tokens, options.compute};
}

/// Without the sum that could overflow.
std::int64_t pages_of(const CachedModelOptions& options) {
  return options.kv_tokens / options.page_tokens + (options.kv_tokens % options.page_tokens != 0 ? 1 : 0);
}

std::vector<std::unique_ptr<ModelPart>> load(const model::ModelFolder& folder,
                                             const CachedModelOptions& options) {
  const auto ranks = static_cast<int>(options.memory.size());
  const kernels::DeviceKind device = options.memory.front().kind();
  // What cannot be is told before weights are read, which takes minutes. All parts are of one size.
  const model::DecoderPart part(folder.config.text, {0, ranks}, device);
  kv::check_pages(layout_of(folder.config.text, part, options), pages_of(options), part.heads, device);

  std::vector<std::unique_ptr<ModelPart>> parts(options.memory.size());
  RankTeam team(ranks);
  team.run(
      [&](int rank) {
        parts[static_cast<std::size_t>(rank)] = std::make_unique<ModelPart>(folder, options, rank);
      },
      [] {});
  return parts;
}

}  // namespace

ModelPart::ModelPart(const model::ModelFolder& folder, const CachedModelOptions& options, int rank)
    : memory(options.memory[static_cast<std::size_t>(rank)]),
      decoder(folder.config.text, folder.parameters(memory, options.compute, options.quantization),
              {rank, static_cast<int>(options.memory.size())}),
      pages(memory, layout_of(decoder.config(), decoder.part(), options), pages_of(options)) {}

CachedModel::CachedModel(std::shared_ptr<const model::ModelFolder> model_folder,
                         const CachedModelOptions& options)
    : folder(std::move(model_folder)),
      parts(load(*folder, options)),
      book(parts.front()->pages.pages(), options.page_tokens),
      prompts(folder->prompts()) {}

}  // namespace vigil::run
