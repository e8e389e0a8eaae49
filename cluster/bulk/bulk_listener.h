// The socket by which others come to a port.
#pragma once

#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <zmq.hpp>

#include "base/descriptor.h"
#include "cluster/sockets/curve.h"
#include "cluster/sockets/socket_monitor.h"

namespace vigil::cluster {

/// A listener that ZeroMQ is given again and again, so that no other has its port in between; `where` tells
/// the port afterwards. Throws BulkError, which names `text`.
base::Descriptor listen_at(const std::string& text, boost::asio::ip::tcp::endpoint& where);

/// A ROUTER, and what becomes of the connections that are made to it. One thread's alone.
struct BulkListener {
  struct Options {
    /// As it is shown, and whether it is of IPv6.
    std::string endpoint;
    bool ipv6 = false;
    /// Without them, plain text.
    std::optional<KeyPair> keys;
    /// Of a message's part, in bytes.
    std::int64_t most_bytes = 0;
    int handshake_ms = 0;
    int farewell_ms = 0;
    /// Messages that wait to be sent on one connection, and the kernel's buffer.
    int send_mark = 0;
    int send_buffer = -1;
  };

  /// Listens there from now on, beside others that do; the descriptor stays its owner's. `name`: another one
  /// for each at a time. Throws zmq::error_t, and has left nothing behind then.
  BulkListener(zmq::context_t& context, const std::string& name, int descriptor, const Options& options);

  zmq::socket_t socket;
  SocketMonitor monitor;
};

}  // namespace vigil::cluster
