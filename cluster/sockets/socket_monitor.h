// What becomes of the connections of a ZeroMQ socket, one event after the other.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>
#include <zmq_addon.hpp>

namespace vigil::cluster {

/// One owner at a time; not thread-safe.
class SocketMonitor {
 public:
  struct Event {
    /// ZMQ_EVENT_*
    int kind = 0;
    int value = 0;
  };

  /// `name`: another one for each monitor of the context at a time; `kinds`: of events, or-ed. To be made
  /// before the socket binds or connects, and destroyed before it.
  SocketMonitor(zmq::context_t& context, zmq::socket_t& socket, const std::string& name, int kinds)
      : watched_(socket), events_(context, zmq::socket_type::pair) {
    const std::string address = "inproc://vigil.monitor." + name;
    if (zmq_socket_monitor(watched_.handle(), address.c_str(), kinds) != 0) throw zmq::error_t();
    events_.set(zmq::sockopt::linger, 0);
    // ZeroMQ's own thread would wait for room.
    events_.set(zmq::sockopt::rcvhwm, 0);
    events_.connect(address);
  }
  ~SocketMonitor() { zmq_socket_monitor(watched_.handle(), nullptr, 0); }
  SocketMonitor(const SocketMonitor&) = delete;
  SocketMonitor& operator=(const SocketMonitor&) = delete;

  /// The next one, if there is one: the event in 16 bits with a value in 32, and the address in another part.
  std::optional<Event> take() {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(events_, std::back_inserter(parts), zmq::recv_flags::dontwait))
      return std::nullopt;
    std::uint16_t kind = 0;
    std::int32_t value = 0;
    std::memcpy(&kind, parts.at(0).data(), sizeof kind);
    std::memcpy(&value, parts[0].data<char>() + sizeof kind, sizeof value);
    return Event{kind, value};
  }

  /// To be polled.
  zmq::socket_t& socket() { return events_; }

 private:
  zmq::socket_t& watched_;
  zmq::socket_t events_;
};

}  // namespace vigil::cluster
