// What has come of a message whose end has not. ZeroMQ hands over whole messages and keeps the parts of one
// without a bound until then, unseen by whoever reads its socket: the kernel is asked what came.
#pragma once

#include <cstdint>
#include <optional>

#include "base/duration.h"
#include "cluster/bulk/bulk.h"

namespace vigil::cluster {

/// How often connections are looked at. What comes in between is not bounded.
inline constexpr base::Duration kBetweenLooks{50};

/// Of one connection. Not thread-safe.
class UnfinishedBytes {
 public:
  /// A whole message has come.
  void heard() { anew_ = true; }
  /// So many bytes have come on the connection in all. False if more than `most` did since the first look
  /// after a whole message.
  bool look(std::uint64_t received, std::uint64_t most) {
    // Fewer than before are those of another connection.
    if (anew_ || received < since_) since_ = received;
    anew_ = false;
    return received - since_ <= most;
  }

 private:
  bool anew_ = true;
  std::uint64_t since_ = 0;
};

/// What a peer that keeps to its grants has under way to us at most, with all that framing and encryption
/// add: as a sender of messages, and as a receiver, that gives credit for those that we send.
std::uint64_t most_unfinished_of_sender(const BulkLimits& limits);
std::uint64_t most_unfinished_of_receiver(const BulkLimits& limits);

/// What has come on this connection of TCP since it was made; nothing if it is none. Any thread.
std::optional<std::uint64_t> bytes_received(int descriptor);

}  // namespace vigil::cluster
