// A connection that a port makes: a socket for each attempt, so that nothing of one goes out by another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <zmq.hpp>

#include "cluster/bulk/bulk.h"
#include "cluster/bulk/unfinished_bytes.h"
#include "cluster/sockets/curve.h"
#include "cluster/sockets/socket_monitor.h"

namespace vigil::cluster {

/// One thread's alone.
struct DialedConnection {
  struct Options {
    boost::asio::ip::tcp::endpoint where;
    /// Without it, plain text.
    std::optional<CurveClient> curve;
    /// Of a message's part, in bytes.
    std::int64_t most_bytes = 0;
    int handshake_ms = 0;
    int farewell_ms = 0;
    /// Of the kernel.
    int receive_buffer = -1;
  };

  /// `name`: another one for each at a time. This and the next throw zmq::error_t.
  DialedConnection(zmq::context_t& context, const std::string& name);
  void connect(const Options& options);

  /// What has become of it, if it is over. Not to be called once `monitor` is gone.
  std::optional<BulkEnd> fate();

  /// Whether more has come than may be, of a message without an end.
  bool overruns(std::uint64_t most);

  zmq::socket_t socket;
  std::optional<SocketMonitor> monitor;
  bool broken = false;
  /// ZeroMQ's, which may have closed it: only to ask what has come by it.
  int descriptor = -1;
  UnfinishedBytes unfinished;
};

}  // namespace vigil::cluster
