// What the alerts actor sees of the topics: `services/` puts a socket behind it.
#pragma once

#include <cstdint>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// One owner at a time; not thread-safe.
class Publisher {
 public:
  virtual ~Publisher() = default;

  /// Hands an event over. False if it cannot be taken now; then it is offered again later.
  virtual bool publish(const OutboxEvent& event) = 0;

  /// An event that was the last of its topic when the process before this one ended: for new subscribers.
  virtual void remember(const OutboxEvent& event) = 0;

  /// Sends new subscribers the last event of their topics, and answers requests for replay. To be called
  /// regularly; its work is bounded.
  virtual void serve() = 0;

  /// How often a subscriber that reads too slowly began to miss events since the last call; how many it
  /// missed, it knows from the sequences.
  virtual std::uint64_t take_dropped() = 0;
};

}  // namespace vigil::actors
