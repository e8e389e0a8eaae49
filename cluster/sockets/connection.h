// What becomes of a client socket's connection, and how either side notices that the other is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <zmq.hpp>

namespace vigil::cluster {

/// A peer that is silent is asked for a sign of life every so often (PING of ZMTP 3.1); one that gives none
/// for so long has vanished, and all that is kept for it goes.
struct Heartbeat {
  std::chrono::milliseconds interval{10'000};
  std::chrono::milliseconds timeout{30'000};
};
/// To be called before the socket is bound or connected.
void use_heartbeat(zmq::socket_t& socket, const Heartbeat& heartbeat);

/// Of a part that a client takes, at most: an event has some KiB, a page of them 256.
inline constexpr std::int64_t kReceivedBytes = 16 << 20;

/// up: it stands, and both sides know each other; lost: it stood, or could not be made; refused: the server
/// does not let this key in; failed: both sides do not speak the same, as when only one of them uses CURVE.
enum class ConnectionEvent : std::uint8_t { up, lost, refused, failed };

/// Hears of them. One owner at a time; not thread-safe.
class ConnectionMonitor {
 public:
  /// The only one of its context. To be made before the socket connects, and destroyed before it.
  ConnectionMonitor(zmq::context_t& context, zmq::socket_t& socket);
  ~ConnectionMonitor();
  ConnectionMonitor(const ConnectionMonitor&) = delete;
  ConnectionMonitor& operator=(const ConnectionMonitor&) = delete;

  /// The next event, if there is one.
  std::optional<ConnectionEvent> take();

  /// To be polled.
  zmq::socket_t& socket() { return events_; }

 private:
  zmq::socket_t& watched_;
  zmq::socket_t events_;
};

}  // namespace vigil::cluster
