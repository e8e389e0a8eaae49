// CAF's broker over sockets that somebody else has made: what `PeerSystem` puts behind its middleman.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <caf/io/doorman.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/io/scribe.hpp>

#include "cluster/peers/peer_sockets.h"

namespace vigil::cluster {

/// How CAF's stream reads and writes such a socket.
class PeerStreamPolicy {
 public:
  explicit PeerStreamPolicy(SecureSocket socket) : socket_(std::move(socket)) {}

  caf::io::network::rw_state read_some(std::size_t& bytes, int, void* to, std::size_t size);
  caf::io::network::rw_state write_some(std::size_t& bytes, int, const void* from, std::size_t size);
  /// What is deciphered already, no poll tells of.
  bool must_read_more(int, std::size_t threshold) const { return socket_.pending() >= threshold; }

 private:
  SecureSocket socket_;
};

/// A connection. Its methods are CAF's to call, in its network thread. CAF believes whatever length a message
/// announces, and makes room for all of it at once: here a connection that announces too much is closed, and
/// of what may come there is only room for what has.
class PeerScribe final : public caf::io::scribe {
 public:
  /// What one message may have. Events go by 256 kB, and the largest answers that nodes give each other,
  /// plans of thousands of cameras, have two megabytes or so; whatever is large goes by the bulk port.
  static constexpr std::size_t kMostOfAMessage = std::size_t{16} << 20;

  /// `log` gets a line when it closes the connection.
  PeerScribe(caf::io::network::default_multiplexer& multiplexer, SecureSocket socket,
             std::shared_ptr<PeerLog> log);

  void configure_read(caf::io::receive_policy::config config) override;
  bool consume(caf::execution_unit* context, const void* data, std::size_t size) override;
  void ack_writes(bool) override {}
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return is_whole_ ? gathered_ : stream_.rd_buf(); }
  void flush() override;
  std::string addr() const override { return peer_.host; }
  std::uint16_t port() const override { return peer_.port; }
  void graceful_shutdown() override;
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

 private:
  void read_next_piece();
  /// Whether the connection goes on.
  bool gather(caf::execution_unit* context, const char* data, std::size_t size);

  PeerAddress peer_;
  std::shared_ptr<PeerLog> log_;
  bool has_pending_;
  bool launched_ = false;
  /// Of a message that is read piece by piece: all that it is to have (0: there is none), and what has come.
  std::size_t wanted_ = 0;
  std::vector<char> gathered_;
  /// It has all come, and goes to the broker.
  bool is_whole_ = false;
  bool announces_too_much_ = false;
  caf::io::network::stream_impl<PeerStreamPolicy> stream_;
};

/// The socket on which nodes connect: it is `PeerSockets` that listens, and this has no descriptor.
class PeerDoorman final : public caf::io::doorman {
 public:
  /// Throws as `PeerSockets::listen`. `sockets` has to outlive it.
  PeerDoorman(caf::io::network::default_multiplexer& multiplexer, PeerSockets& sockets,
              const PeerAddress& address);

  bool new_connection() override { return true; }
  void launch() override {}
  void graceful_shutdown() override;
  std::string addr() const override { return address_.host; }
  std::uint16_t port() const override { return address_.port; }
  void add_to_loop() override {}
  void remove_from_loop() override {}

 private:
  void admit(SecureSocket socket);

  caf::io::network::default_multiplexer& multiplexer_;
  PeerSockets& sockets_;
  PeerAddress address_;
};

}  // namespace vigil::cluster
