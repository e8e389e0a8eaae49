// What is under way to one peer: the books of the sender, and what it has taken and not handed over yet.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "cluster/bulk/receive_account.h"

namespace vigil::cluster {

/// A message with the number that it got.
struct BulkNumbered {
  std::uint64_t number = 0;
  BulkMessage message;
};

/// Thread-safe; the clock has to outlive it.
class SendAccount {
 public:
  SendAccount(const BulkLimits& limits, const base::Clock& clock);

  BulkSent send(const BulkMessage& message);

  /// A stream stands, on which the peer grants that much, and takes messages within these limits. The number
  /// of its first message.
  std::uint64_t open(const BulkGrant& grant, const BulkLimits& of_peer);
  /// It has ended, and what was under way is lost. All numbers that were given are lower than this one.
  std::uint64_t close(BulkEnd why);

  /// What was taken and is to be handed over, in order: messages until they have this many bytes together,
  /// one at least.
  std::vector<BulkNumbered> take(std::uint64_t bytes);

  /// False if no such message is under way.
  bool acknowledge(std::uint64_t number);
  void grant(const BulkGrant& more);
  /// Whether a send that was refused would be taken now; tells it once.
  bool take_room();

  void count(BulkCounters& counters) const;

 private:
  struct UnderWay {
    std::uint64_t bytes = 0;
    bool acknowledged = false;
  };

  bool fits(std::uint64_t bytes) const;
  bool too_large(const BulkMessage& message, std::uint64_t bytes) const;
  void unblock();

  const BulkLimits limits_;
  const base::Clock& clock_;
  mutable std::mutex mutex_;
  BulkLimits of_peer_;
  BulkGrant granted_;
  std::deque<BulkNumbered> taken_;
  /// From `first_` on; what was acknowledged goes when all before it is.
  std::deque<UnderWay> under_way_;
  std::uint64_t first_ = 1;
  std::uint64_t next_ = 1;
  /// The bytes of the smallest message that was refused.
  std::optional<std::uint64_t> refused_;
  base::Clock::TimePoint refused_at_{};
  BulkCounters::Flow flow_;
  std::uint64_t refused_sends_ = 0;
  std::chrono::nanoseconds blocked_{0};
};

}  // namespace vigil::cluster
