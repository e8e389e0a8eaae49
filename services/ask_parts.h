// What takes questions about the past in a running service, out of its settings.
#pragma once

#include <caf/actor_system.hpp>
#include <spdlog/logger.h>

#include "actors/messages/cache.h"
#include "actors/status/metrics.h"
#include "base/clock.h"
#include "cluster/asks/server.h"
#include "config/settings.h"
#include "fleet/asks/ask_book.h"
#include "fleet/asks/asks_actor.h"

namespace vigil::services {

/// Reads the server's secret key, if it has one: then the keys of the askers, and no others, are let in.
/// Throws KeyError. The clock outlives the server.
cluster::AskServer::Options ask_server_options(const config::AskSettings& settings, const base::Clock& clock);

/// Which asker may what, and how many questions there may be at once.
fleet::AskBook::Options ask_book_options(const config::AskSettings& settings);

/// Takes questions at their socket, as long as it lives, if there is a cache and the settings say so; its end
/// has who takes them quit.
class TakingAsks {
 public:
  /// What is referred to has to outlive all actors. Throws AskError for a socket that cannot be had,
  /// KeyError.
  TakingAsks(const config::AskSettings& settings, const fleet::past_answers_actor& answers,
             caf::actor_system& system, const base::Clock& clock, spdlog::logger& logger,
             actors::Metrics& metrics);
  ~TakingAsks();
  TakingAsks(const TakingAsks&) = delete;
  TakingAsks& operator=(const TakingAsks&) = delete;

 private:
  fleet::asks_actor asks_;
};

}  // namespace vigil::services
