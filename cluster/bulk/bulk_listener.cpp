#include "cluster/bulk/bulk_listener.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/socket.h>

#include "cluster/bulk/bulk.h"
#include "cluster/bulk/frames.h"

namespace vigil::cluster {
namespace {

constexpr int kWaitingConnections = 128;

}  // namespace

base::Descriptor listen_at(const std::string& text, boost::asio::ip::tcp::endpoint& where) {
  base::Descriptor listener(
      ::socket(where.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (listener) ::setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto size = static_cast<socklen_t>(where.size());
  if (!listener || ::bind(listener.number(), where.data(), size) != 0 ||
      ::listen(listener.number(), kWaitingConnections) != 0)
    throw BulkError(text + ": " + std::generic_category().message(errno));
  size = static_cast<socklen_t>(where.capacity());
  ::getsockname(listener.number(), where.data(), &size);
  return listener;
}

BulkListener::BulkListener(zmq::context_t& context, const std::string& name, int descriptor,
                           const Options& options)
    : socket(context, zmq::socket_type::router),
      monitor(context, socket, name, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) {
  socket.set(zmq::sockopt::router_mandatory, true);
  socket.set(zmq::sockopt::linger, options.farewell_ms);
  socket.set(zmq::sockopt::maxmsgsize, options.most_bytes);
  socket.set(zmq::sockopt::handshake_ivl, options.handshake_ms);
  socket.set(zmq::sockopt::rcvhwm, kNoMark);
  socket.set(zmq::sockopt::sndhwm, options.send_mark);
  socket.set(zmq::sockopt::sndbuf, options.send_buffer);
  socket.set(zmq::sockopt::ipv6, options.ipv6);
  if (options.keys) use_curve(socket, CurveServer{*options.keys, {}});
  // ZeroMQ closes this one.
  const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0 || zmq_setsockopt(socket.handle(), ZMQ_USE_FD, &own, sizeof own) != 0) throw zmq::error_t();
  socket.bind(options.endpoint);
}

}  // namespace vigil::cluster
