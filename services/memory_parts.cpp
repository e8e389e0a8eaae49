#include "services/memory_parts.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include <caf/send.hpp>

#include "actors/cache/cache_actor.h"
#include "actors/cache/keeps.h"
#include "engine/kv/history/cipher.h"
#include "engine/kv/history/page_info.h"
#include "engine/model/families/prompt.h"
#include "engine/model/files/fingerprint.h"

namespace vigil::services {
namespace {

memory::HostTier::Ages ages_of(const config::FormSettings& forms) {
  memory::HostTier::Ages ages;
  const auto keep = [&](kv::Form form, base::Duration age) {
    if (age > base::Duration::zero()) ages.emplace(form, age);
  };
  keep(kv::Form::bf16, forms.bf16);
  keep(kv::Form::fp8, forms.fp8);
  keep(kv::Form::int4, forms.int4);
  keep(kv::Form::embeddings, forms.embeddings);
  keep(kv::Form::sketch, forms.sketch);
  return ages;
}

/// Of what a page's keys depend on: the model, its preprocessing, and the text before the frames.
history::Fingerprint fingerprint_of(const model::ModelFolder& folder) {
  const std::string model = model::fingerprint(folder.path);
  const model::PromptBuilder prompts = folder.prompts();
  const std::array<std::span<const std::byte>, 2> values{std::as_bytes(std::span(model)),
                                                         std::as_bytes(prompts.before_tokens())};
  return history::fingerprint_of(values);
}

}  // namespace

std::optional<std::int64_t> window_memory_of(const config::EngineSettings& settings, std::size_t devices,
                                             std::optional<std::uint64_t> there) {
  const std::uint64_t said = settings.window_memory.bytes;
  if (said == 0 && !there) return std::nullopt;
  const std::uint64_t all = said > 0 ? said : *there / 4;
  return static_cast<std::int64_t>(all / std::max<std::size_t>(1, devices));
}

actors::CacheDesk::Options cache_options(const config::MemorySettings& settings,
                                         const model::ModelFolder& folder) {
  actors::CacheDesk::Options options;
  options.memory.host_bytes = settings.host.budget.bytes;
  options.memory.eviction =
      settings.eviction == config::Eviction::lru ? memory::Eviction::lru : memory::Eviction::value;
  options.memory.host = ages_of(settings.host.forms);
  options.memory.disk = ages_of(settings.disk.forms);
  options.memory.disk_bytes = settings.disk.budget.bytes;
  options.memory.parts.layers = static_cast<std::uint16_t>(folder.config.text.num_hidden_layers);
  options.memory.fingerprint = fingerprint_of(folder);
  return options;
}

MemoryParts::MemoryParts(const config::MemorySettings& settings, const model::ModelFolder& folder,
                         const base::Clock& clock, actors::Metrics& metrics, actors::StatusBoard& board,
                         spdlog::logger& logger)
    : settings_(settings), clock_(clock), metrics_(metrics), board_(board), logger_(logger) {
  if (!settings.enabled) return;
  options_ = cache_options(settings, folder);
  if (settings.dir.empty()) return;
  history::HistoryOptions history;
  if (!settings.key_file.empty()) history.master = history::SecretKey::of_file(settings.key_file);
  store_ = history::open_history_store(settings.dir, history);
}

MemoryParts::Running::Running(MemoryParts& parts, caf::actor_system& system, const actors::Clips* clips) {
  if (!parts.options_) return;
  actors::CacheDesk::Options options = *parts.options_;
  options.clips = clips;
  access_.most = parts.settings_.host.budget.bytes + parts.options_->memory.parts.most_waiting +
                 parts.options_->memory.parts.part_bytes;
  access_.cache =
      system.spawn<caf::detached>(actors::cache, actors::CacheDeps{.store = parts.store_.get(),
                                                                   .clock = parts.clock_,
                                                                   .metrics = parts.metrics_,
                                                                   .board = parts.board_,
                                                                   .logger = parts.logger_,
                                                                   .options = std::move(options)});
}

void MemoryParts::Running::keep(const config::Settings& settings) const {
  if (access_.cache)
    caf::anon_send(access_.cache, std::make_shared<const actors::Keeps>(actors::keeps_of(settings)));
}

MemoryParts::Running::~Running() {
  if (access_.cache) caf::anon_send(access_.cache, actors::stop_atom_v);
}

}  // namespace vigil::services
