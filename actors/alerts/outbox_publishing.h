// What stands between an outbox and a publisher: everything that was kept is published once, in its order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "actors/alerts/outbox.h"
#include "actors/alerts/publisher.h"

namespace vigil::actors {

/// Follows an outbox that may become another one. What it is given has to outlive it. Not thread-safe. Calls
/// may throw OutboxError; then they are to be made again, after `Outbox::refresh`.
class OutboxPublishing {
 public:
  OutboxPublishing(Outbox& outbox, Publisher& publisher) : outbox_(outbox), publisher_(publisher) {}

  /// Has the publisher know the last event of each topic, once for each outbox: of a process before this one,
  /// which nobody has heard from this one. To be called before the first `publish_written` of an outbox.
  void remember_last();

  /// Publishes what waits for that, as far as the publisher takes it, and acknowledges what it has handed
  /// over: a kill before that has the next process publish it. `after`: events up to this position are left
  /// alone.
  void publish_written(std::uint64_t after = 0);

  /// Events in the outbox that are not acknowledged yet, as far as it was looked at; `more` came since.
  std::size_t waiting() const { return waiting_; }
  void wrote(std::size_t more) { waiting_ += more; }

  /// The publisher has taken all up to this position of this outbox.
  std::uint64_t offered() const { return offered_of_ == outbox_.identity() ? offered_ : 0; }

 private:
  Outbox& outbox_;
  Publisher& publisher_;
  std::size_t waiting_ = 0;
  std::uint64_t offered_ = 0;
  std::string offered_of_;
  /// The outbox whose last events the publisher knows.
  std::string remembered_of_;
};

}  // namespace vigil::actors
