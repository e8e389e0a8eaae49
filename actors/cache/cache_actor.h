// The shell around `RoomBook`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/cache/room_book.h"
#include "actors/messages/messages.h"
#include "actors/status/metrics.h"

namespace vigil::actors {

struct CacheDeps {
  std::string device;
  /// "host" or "gpu".
  std::string tier;
  /// Tokens that the KV cache has room for.
  std::int64_t room = 0;
  Metrics& metrics;
  spdlog::logger& logger;
};

struct cache_state {
  explicit cache_state(cache_actor::pointer self_pointer) : self(self_pointer) {}

  void serve();

  cache_actor::pointer self;
  std::optional<CacheDeps> deps;
  std::optional<RoomBook> book;
  std::uint64_t requests = 0;
  std::map<std::uint64_t, prefill_actor> askers;
  static inline const char* name = "cache";
};

cache_actor::behavior_type cache(cache_actor::stateful_pointer<cache_state> self, CacheDeps deps);

}  // namespace vigil::actors
