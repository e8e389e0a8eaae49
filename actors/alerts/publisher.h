// What the alerts actor sees of the topics: `services/` puts a socket behind it.
#pragma once

#include <cstdint>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// New subscribers get the last event of their topics. One owner at a time; not thread-safe.
class Publisher {
 public:
  virtual ~Publisher() = default;

  /// Takes an event, to be handed to the topics soon. False if it cannot be taken now; then it is offered
  /// again later. Fewer than 256 are taken and not handed over at any time; positions ascend.
  virtual bool publish(const OutboxEvent& event) = 0;

  /// Up to this position everything that was taken has been handed over. Does not block.
  virtual std::uint64_t published() const = 0;

  /// Waits until everything that was taken has been handed over, which no subscriber can hold up.
  virtual void drain() = 0;

  /// As `drain`; then positions begin anew, and `published` is 0.
  virtual void start_over() = 0;

  /// An event that was the last of its topic when the process before this one ended: for new subscribers.
  virtual void remember(const OutboxEvent& event) = 0;

  /// Answers requests for replay. To be called regularly; its work is bounded.
  virtual void serve() = 0;

  /// How often a subscriber that reads too slowly began to miss events since the last call; how many it
  /// missed, it knows from the sequences.
  virtual std::uint64_t take_dropped() = 0;
};

}  // namespace vigil::actors
