#include "cluster/sockets/connection.h"

#include <cstring>
#include <iterator>
#include <vector>

#include <zmq_addon.hpp>

namespace vigil::cluster {

void use_heartbeat(zmq::socket_t& socket, const Heartbeat& heartbeat) {
  socket.set(zmq::sockopt::heartbeat_ivl, static_cast<int>(heartbeat.interval.count()));
  socket.set(zmq::sockopt::heartbeat_timeout, static_cast<int>(heartbeat.timeout.count()));
  // The other side gives up after the same time, also one that does not ask by itself.
  socket.set(zmq::sockopt::heartbeat_ttl, static_cast<int>(heartbeat.timeout.count()));
}

ConnectionMonitor::ConnectionMonitor(zmq::context_t& context, zmq::socket_t& socket)
    : watched_(socket), events_(context, zmq::socket_type::pair) {
  const char* address = "inproc://vigil.connection";
  const int wanted = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                     ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED;
  if (zmq_socket_monitor(watched_.handle(), address, wanted) != 0) throw zmq::error_t();
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(address);
}

ConnectionMonitor::~ConnectionMonitor() {
  zmq_socket_monitor(watched_.handle(), nullptr, 0);
}

// Two parts: the event (16 bits) with a value (32), and the address.
std::optional<ConnectionEvent> ConnectionMonitor::take() {
  std::vector<zmq::message_t> parts;
  if (!zmq::recv_multipart(events_, std::back_inserter(parts), zmq::recv_flags::dontwait))
    return std::nullopt;
  std::uint16_t event = 0;
  std::memcpy(&event, parts.at(0).data(), sizeof event);
  switch (event) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      return ConnectionEvent::up;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return ConnectionEvent::refused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return ConnectionEvent::failed;
    default:
      return ConnectionEvent::lost;
  }
}

}  // namespace vigil::cluster
