#include "cluster/bulk/dialed_connection.h"

#include <chrono>

#include "cluster/bulk/frames.h"
#include "cluster/sockets/tcp_address.h"

namespace vigil::cluster {
namespace {

// A socket is for one connection.
constexpr std::chrono::milliseconds kNever = std::chrono::hours(24);

}  // namespace

DialedConnection::DialedConnection(zmq::context_t& context, const std::string& name)
    : socket(context, zmq::socket_type::dealer),
      monitor(std::in_place, context, socket, name,
              ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED |
                  ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                  ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {}

void DialedConnection::connect(const Options& options) {
  // Without it, what came last would be thrown away with the connection.
  socket.set(zmq::sockopt::reconnect_ivl, static_cast<int>(kNever.count()));
  socket.set(zmq::sockopt::linger, options.farewell_ms);
  socket.set(zmq::sockopt::maxmsgsize, options.most_bytes);
  socket.set(zmq::sockopt::handshake_ivl, options.handshake_ms);
  socket.set(zmq::sockopt::rcvhwm, kNoMark);
  socket.set(zmq::sockopt::rcvbuf, options.receive_buffer);
  socket.set(zmq::sockopt::ipv6, options.where.address().is_v6());
  if (options.curve) use_curve(socket, *options.curve);
  socket.connect(tcp_text(options.where));
}

std::optional<BulkEnd> DialedConnection::fate() {
  std::optional<BulkEnd> fate;
  if (broken) fate = BulkEnd::connection;
  while (const auto event = monitor->take()) {
    if (event->kind == ZMQ_EVENT_CONNECTED) {
      descriptor = event->value;
      continue;
    }
    if (fate == BulkEnd::refused) continue;
    const bool broke = event->kind == ZMQ_EVENT_DISCONNECTED || event->kind == ZMQ_EVENT_CLOSED;
    fate = broke ? BulkEnd::connection : BulkEnd::refused;
  }
  return fate;
}

bool DialedConnection::overruns(std::uint64_t most) {
  const auto received = descriptor < 0 ? std::nullopt : bytes_received(descriptor);
  return received && !unfinished.look(*received, most);
}

}  // namespace vigil::cluster
