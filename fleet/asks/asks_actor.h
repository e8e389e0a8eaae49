// The shell around `AskBook`: requests about the past come by a socket, and are answered by the cache.
#pragma once

#include <memory>
#include <optional>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/cache.h"
#include "actors/messages/messages.h"
#include "actors/status/memory_series.h"
#include "actors/status/metrics.h"
#include "base/clock.h"
#include "cluster/asks/server.h"
#include "fleet/asks/ask_book.h"

namespace vigil::fleet {

/// The ASKS actor takes requests about the past, and passes answers on.
using asks_actor = actors::past_listener_actor::extend<
    // Take up what has come (to itself).
    caf::reacts_to<actors::tick_atom>,
    // Quit.
    caf::reacts_to<actors::stop_atom>>;

/// Whoever answers about the past: the cache of this process, or what asks all nodes.
using past_answers_actor = caf::typed_actor<
    // A request, whose replies go to the sender; and one whose answer nobody waits for any more.
    caf::reacts_to<actors::PastRequestPtr>, caf::reacts_to<actors::forget_atom, std::uint64_t>>;

struct AsksDeps {
  /// Its socket; the actor's from then on.
  std::shared_ptr<cluster::AskServer> server;
  /// When it ends, whoever has asked, or asks, is told that nobody answers.
  past_answers_actor answers;
  AskBook::Options book = {};
  /// All outlive it. The clock is the server's and the cache's, too.
  const base::Clock& clock;
  spdlog::logger& logger;
  actors::Metrics& metrics;
};

struct asks_state {
  explicit asks_state(asks_actor::pointer self_pointer) : self(self_pointer) {}

  void tick();
  void hear(const actors::PastReply& word);
  void lose_answers();
  void end();
  void log();
  void count();

  asks_actor::pointer self;
  std::optional<AsksDeps> deps;
  std::optional<AskBook> book;
  std::optional<actors::AskSeries> series;
  static inline const char* name = "asks";
};

asks_actor::behavior_type asks(asks_actor::stateful_pointer<asks_state> self, AsksDeps deps);

}  // namespace vigil::fleet
