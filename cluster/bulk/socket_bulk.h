// Bulk bytes over ZeroMQ: the port that nodes have.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "cluster/sockets/curve.h"

namespace vigil::cluster {

struct SocketBulkOptions {
  /// tcp://ADDRESS:PORT; port 0 takes any free one.
  std::string endpoint = {};
  /// CURVE; without it, everything is plain text, and whoever reaches the endpoint may call himself what he
  /// likes: on loopback alone, unless the next says so.
  std::optional<KeyPair> keys = std::nullopt;
  bool plain_text_beyond_loopback = false;
  /// Connections that others have made, at once, at most. When one more comes, the oldest goes of those that
  /// no stream stands on.
  int connections = 256;
  /// Threads that read and write the sockets, beside the port's own.
  int io_threads = 1;
  /// Of the kernel, for each connection, in bytes; -1 leaves them to the kernel.
  int send_buffer = -1;
  int receive_buffer = -1;
};

/// What strangers did to a port.
struct BulkStrangers {
  /// Connections that others have made, now.
  int connections = 0;
  /// That were closed since there were too many, and since they were not let in in time.
  std::uint64_t displaced = 0;
  std::uint64_t expired = 0;
  /// Handshakes with a key that is not listed.
  std::uint64_t unknown_keys = 0;
};

/// Has a thread of its own, which does all work with sockets and calls the owner, beside those of ZeroMQ.
class SocketBulk final : public BulkPort {
 public:
  /// The owner and the clock outlive it. Throws BulkError, as when the endpoint is in use.
  SocketBulk(const BulkOptions& options, const SocketBulkOptions& sockets, BulkOwner& owner,
             const base::Clock& clock);
  /// Tells the peers, and waits for nobody: done within half a second. Not to be called by the owner's calls.
  ~SocketBulk() override;

  BulkSent send(const std::string& peer, const BulkMessage& message) override;
  std::vector<BulkRefusal> set_peers(const std::vector<BulkPeer>& peers) override;
  std::map<std::string, BulkCounters> counters() const override;
  const std::string& endpoint() const override;

  /// Another pair, for all connections that are made from now on. Incoming streams go on; outgoing ones are
  /// made anew, since ZeroMQ ends what came by a listener together with it. There have to be keys already, or
  /// BulkError is thrown. While that cannot be done, as without descriptors, all stays as it was, the owner
  /// hears of it, and it is tried again.
  void set_keys(const KeyPair& keys);

  BulkStrangers strangers() const;

 private:
  class Running;

  std::unique_ptr<Running> running_;
};

}  // namespace vigil::cluster
