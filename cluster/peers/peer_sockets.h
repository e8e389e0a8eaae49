// Makes connections between nodes: TCP, and TLS by which both know each other, before anybody else sees them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/peers/node_certificates.h"
#include "cluster/peers/peer_address.h"
#include "cluster/peers/peer_log.h"
#include "cluster/peers/secure_socket.h"

namespace vigil::cluster {

/// Has a thread of its own, which nobody on the other side of a socket can hold up. Thread-safe.
class PeerSockets {
 public:
  struct Options {
    /// Null: plain text, which stays on this machine (addresses of loopback) unless `allow_plain_text`.
    std::shared_ptr<NodeCertificates> certificates;
    bool allow_plain_text = false;
    /// For name, connection and handshake together.
    std::chrono::milliseconds patience{5000};
    /// Connections that come in whose handshake is under way, at most; the oldest goes when one more comes.
    std::size_t handshakes = 64;
    /// How often the certificates are looked at where nobody connects, so that what is wrong with new ones is
    /// told while those from before still hold.
    std::chrono::milliseconds look{5000};
    /// Lines about connections that were refused or closed, not more than some a minute; may be empty. Called
    /// by one thread at a time.
    std::function<void(const std::string&)> log = {};
  };

  explicit PeerSockets(Options options);
  /// Nothing is called any more when this is gone.
  ~PeerSockets();
  PeerSockets(const PeerSockets&) = delete;
  PeerSockets& operator=(const PeerSockets&) = delete;

  /// Connections that come in from now on, on a thread of this class's. Port 0 takes any free one. Returns
  /// where it really listens. Throws std::runtime_error: one line with the address and the reason. One at a
  /// time.
  PeerAddress listen(const PeerAddress& address, std::function<void(SecureSocket)> accepted);
  void stop_listening();

  /// A connection to a node whose certificate is for this host, or why there is none: one line. With TLS, the
  /// side that listens has to speak first, as it does in CAF's protocol.
  using Dialed = std::function<void(std::variant<SecureSocket, std::string>)>;
  void dial(const PeerAddress& address, Dialed done);

  /// For whoever has connections of this, also when this is gone.
  std::shared_ptr<PeerLog> log() const;

  /// The addresses that a name stands for, in numbers; none if it is unknown now.
  void resolve(const PeerAddress& address, std::function<void(std::vector<PeerAddress>)> done);

 private:
  class Running;
  std::unique_ptr<Running> running_;
};

}  // namespace vigil::cluster
