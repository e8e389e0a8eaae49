// What `vigil run` remembers with: the store of its disk, and the cache actor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <caf/actor_system.hpp>
#include <spdlog/logger.h>

#include "actors/cache/cache_desk.h"
#include "actors/device/engine_parts.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "base/clock.h"
#include "base/duration.h"
#include "config/settings.h"
#include "engine/kv/history/history_store.h"
#include "engine/model/model_folder.h"

namespace vigil::services {

/// Of the host's memory, what the windows' memories of one engine may take: an equal part of what these
/// settings say of all its process's engines, one a device; where they say nothing, of a quarter of `there`,
/// the bytes that this process may use. Nothing where nobody says: they have no bound.
std::optional<std::int64_t> window_memory_of(const config::EngineSettings& settings, std::size_t devices,
                                             std::optional<std::uint64_t> there);

/// What these settings mean for pages of this model, whose fingerprint they have.
actors::CacheDesk::Options cache_options(const config::MemorySettings& settings,
                                         const model::ModelFolder& folder);

/// What is remembered, as long as it lives: its end has the cache write what it has taken, and quit; who
/// waits for the actors' end waits for that.
class MemoryParts {
 public:
  /// All have to outlive it, and it all actors. Nothing is opened where nothing is to be remembered. Throws
  /// HistoryError for a folder or a key that cannot be used, std::runtime_error for a model that cannot be
  /// read.
  MemoryParts(const config::MemorySettings& settings, const model::ModelFolder& folder,
              const base::Clock& clock, actors::Metrics& metrics, actors::StatusBoard& board,
              spdlog::logger& logger);

  /// From now on, before there is a cache, what goes to the disk waits so long for more at most.
  void write_after(base::Duration part_time) {
    if (options_) options_->memory.parts.part_time = part_time;
  }

  /// While it lives, there is a cache.
  class Running {
   public:
    /// `clips`: which show what cameras saw; has to outlive all actors. Null: none is named.
    Running(MemoryParts& parts, caf::actor_system& system, const actors::Clips* clips = nullptr);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    /// Without a cache, if nothing is remembered.
    const actors::CacheAccess& access() const { return access_; }

    /// So long this configuration's cameras are remembered from now on: also those that are off, and before
    /// any is watched.
    void keep(const config::Settings& settings) const;

   private:
    actors::CacheAccess access_;
  };

 private:
  const config::MemorySettings& settings_;
  std::optional<actors::CacheDesk::Options> options_;
  std::unique_ptr<history::HistoryStore> store_;
  const base::Clock& clock_;
  actors::Metrics& metrics_;
  actors::StatusBoard& board_;
  spdlog::logger& logger_;
};

}  // namespace vigil::services
