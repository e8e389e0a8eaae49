// What stands before a ZeroMQ socket that strangers can reach. ZeroMQ bounds neither the connections of a
// listener nor the parts of a message nor what the subscriptions of a peer cost; this does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <zmq.hpp>

#include "cluster/sockets/nameless_socket.h"
#include "cluster/sockets/peer_account.h"

namespace vigil::cluster {

/// Hears what becomes of a gate's connections, on the gate's thread; must not block or throw.
class GateObserver {
 public:
  virtual ~GateObserver() = default;
  /// So many are open now.
  virtual void connections(int open) = 0;
  virtual void refused(Refusal reason) = 0;
};

/// What an operator may choose.
struct GateOptions {
  /// Connections that are open at once, at most: of all, and of one address (of a network of 64 bits, in
  /// IPv6). Each takes three descriptors.
  int connections = 256;
  int connections_of_address = 64;
  /// Connections at once whose two sides do not know each other yet, and how long they may take. When one
  /// more comes, the oldest of them goes.
  int handshakes = 64;
  std::chrono::milliseconds handshake_time{10'000};
  /// Outlives the socket.
  GateObserver* observer = nullptr;
};

/// How many connections each of `gates` gates may have, so that all of them together take a quarter of a
/// process's descriptors at most: `wanted`, or fewer, but one.
int fitting_connections(int wanted, std::uint64_t descriptors, int gates);

/// Accepts TCP connections and passes their bytes to and from a ZeroMQ socket, as long as each keeps to its
/// limits. What a client does not take waits in ZeroMQ, whose high-water mark decides. Has a thread of its
/// own.
class Gate {
 public:
  /// `endpoint`: tcp://HOST:PORT as ZeroMQ takes it, port 0 takes any free one; `inner`: the path of
  /// the Unix socket on which the ZeroMQ socket listens; `linger`: how long what was sent may still go
  /// out when this is destroyed, which is to be after the ZeroMQ socket. Throws std::system_error.
  Gate(const std::string& endpoint, const std::string& inner, const GateOptions& options,
       const PeerLimits& limits, std::chrono::milliseconds linger);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Where it really listens.
  const std::string& endpoint() const { return endpoint_; }

 private:
  class Running;
  class Connection;

  std::unique_ptr<Running> running_;
  std::string endpoint_;
};

/// Where a server's socket listens: tcp:// behind a gate, ipc:// by itself, open to the owner of the process
/// alone. Has to outlive the socket's context, whose last messages it takes along.
class Entrance {
 public:
  /// Binds the socket. Throws zmq::error_t or std::system_error.
  void open(zmq::socket_t& socket, const std::string& endpoint, const GateOptions& options,
            const PeerLimits& limits, std::chrono::milliseconds linger);

  /// Where it really listens.
  const std::string& endpoint() const { return endpoint_; }

 private:
  std::optional<NamelessSocket> inner_;
  std::unique_ptr<Gate> gate_;
  std::string endpoint_;
};

}  // namespace vigil::cluster
