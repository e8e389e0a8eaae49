// What one peer may send us, and what of it is still held: the books of the receiver.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "cluster/bulk/bulk.h"

namespace vigil::cluster {

/// Bytes and messages that a sender may have under way.
struct BulkGrant {
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
};

/// Thread-safe. Receipts keep it alive.
class ReceiveAccount {
 public:
  /// `wake`: called when there is something to tell the peer, with this locked; must not block.
  ReceiveAccount(const BulkLimits& limits, std::function<void()> wake);

  /// A new stream begins; what was received before still counts. What its sender may have under way at first.
  BulkGrant begin(std::uint64_t stream);
  /// A message of the stream; false if that is more than was granted.
  bool take(std::uint64_t bytes);
  void end(BulkEnd why);
  /// Nothing is called any more.
  void close();

  /// What has been let go since the last call: messages of this stream, and how much more room there is by
  /// what was received before it.
  struct Released {
    std::vector<std::uint64_t> numbers;
    BulkGrant more;
    bool empty() const { return numbers.empty() && more.messages == 0; }
  };
  Released take_released();

  void release(std::uint64_t stream, std::uint64_t number, std::uint64_t bytes);

  void set_open();
  BulkCounters::Flow counters() const;

 private:
  const BulkLimits limits_;
  mutable std::mutex mutex_;
  std::function<void()> wake_;
  std::uint64_t stream_ = 0;
  /// Of the stream: granted, and taken without having been let go.
  BulkGrant granted_;
  BulkGrant held_;
  Released released_;
  /// Of all streams.
  BulkCounters::Flow flow_;
};

}  // namespace vigil::cluster
