// Bulk bytes between ports of one thread, without sockets: the same contract as `socket_bulk.h`, for tests
// and for simulations that delay, cut, drop and damage what crosses, in a time of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "cluster/bulk/wire.h"

namespace vigil::cluster {

/// What lies between the ports. Not thread-safe: it, its ports and their receipts belong to one thread.
class MemoryBulkNetwork {
 public:
  /// Has these frames arrive: at once, later (not from inside the port that sends, so that no port is entered
  /// twice), or never. Of two ports, what is sent first is to arrive first: otherwise a stream breaks. No
  /// frames at all: the end of a connection.
  using Arrive = std::function<void(Frames)>;
  using Carry =
      std::function<void(const std::string& from, const std::string& to, Frames frames, Arrive arrive)>;

  /// The clock outlives it.
  MemoryBulkNetwork(const base::Clock& clock, Carry carry);
  ~MemoryBulkNetwork();
  MemoryBulkNetwork(const MemoryBulkNetwork&) = delete;
  MemoryBulkNetwork& operator=(const MemoryBulkNetwork&) = delete;

  /// Has every port do what there is to do. To be called after whatever happens, and no later than at the
  /// time that it tells.
  base::Clock::TimePoint step();

  /// Breaks the connections between these two ports; both sides notice at once. New ones can be made.
  void cut(const std::string& one, const std::string& other);

 private:
  friend class MemoryBulk;
  struct State;

  std::shared_ptr<State> state_;
};

/// Ends before its network does.
class MemoryBulk final : public BulkPort {
 public:
  /// `endpoint`: any text by which the others dial it. `key`: stands for a pair of keys, or empty for plain
  /// text. The owner outlives it. Throws BulkError if the endpoint is in use.
  MemoryBulk(const BulkOptions& options, const std::string& endpoint, const std::string& key,
             BulkOwner& owner, MemoryBulkNetwork& network);
  ~MemoryBulk() override;

  BulkSent send(const std::string& peer, const BulkMessage& message) override;
  std::vector<BulkRefusal> set_peers(const std::vector<BulkPeer>& peers) override;
  std::map<std::string, BulkCounters> counters() const override;
  const std::string& endpoint() const override;

  /// As SocketBulk::set_keys.
  void set_key(const std::string& key);

 private:
  friend class MemoryBulkNetwork;
  class Running;

  std::shared_ptr<Running> running_;
};

}  // namespace vigil::cluster
