// A connection between two nodes, once both know who the other is.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <openssl/types.h>

namespace vigil::cluster {

/// Has the session read and write this descriptor, by calls that raise no SIGPIPE where the other side has
/// gone. False if there is no memory.
bool use_descriptor(SSL* session, int descriptor);

/// Owns a connected socket that does not block, and its TLS session. One owner at a time; not thread-safe.
class SecureSocket {
 public:
  SecureSocket() = default;
  /// `session`: on this descriptor, its handshake done; null: plain text.
  SecureSocket(int descriptor, std::shared_ptr<SSL> session, std::string peer)
      : descriptor_(descriptor), session_(std::move(session)), peer_(std::move(peer)) {}
  SecureSocket(SecureSocket&& other) noexcept;
  SecureSocket& operator=(SecureSocket&& other) noexcept;
  SecureSocket(const SecureSocket&) = delete;
  SecureSocket& operator=(const SecureSocket&) = delete;
  ~SecureSocket();

  enum class Outcome : unsigned char { moved, would_block, closed };
  /// How many bytes were moved is in `bytes`, 0 unless the outcome is `moved`.
  Outcome read(void* to, std::size_t size, std::size_t& bytes);
  Outcome write(const void* from, std::size_t size, std::size_t& bytes);
  /// Bytes that were received and deciphered, and that no poll tells of.
  std::size_t pending() const;

  int descriptor() const { return descriptor_; }
  /// HOST:PORT of the other side.
  const std::string& peer() const { return peer_; }
  /// From now on somebody else closes the descriptor, which has to outlive this.
  int lend();

 private:
  Outcome outcome_of(int result) const;

  int descriptor_ = -1;
  bool owns_ = true;
  std::shared_ptr<SSL> session_;
  std::string peer_;
};

}  // namespace vigil::cluster
