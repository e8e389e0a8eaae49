// Ports over real sockets, and whoever is none as it should be.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <zmq.hpp>
#include <zmq_addon.hpp>

#include "cluster/bulk/frames.h"
#include "cluster/bulk/socket_bulk.h"
#include "cluster/bulk/wire.h"
#include "cluster/process/clock.h"
#include "tests/cluster/bulk/heard.h"

namespace vigil::cluster::testing {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

inline BulkOptions options(const std::string& name, BulkLimits limits = {}) {
  return {.name = name,
          .limits = limits,
          .heartbeat = 100ms,
          .silence = 1500ms,
          .handshake = 1500ms,
          .first_pause = 10ms,
          .longest_pause = 100ms};
}

inline bool until(const std::function<bool()>& holds) {
  const Heard nobody;
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    nobody.wait_a_moment();
  }
  return true;
}

struct Node {
  explicit Node(const std::string& name, BulkLimits limits = {}, SocketBulkOptions sockets = {})
      : port(options(name, limits),
             (sockets.endpoint = sockets.endpoint.empty() ? "tcp://127.0.0.1:0" : sockets.endpoint, sockets),
             heard, clock) {}

  SystemClock clock;
  Heard heard;
  SocketBulk port;
};

/// Whether a message goes from one to the other, within the time that a test waits.
inline void expect_served(Node& from, Node& to, const std::string& from_name, const std::string& to_name) {
  const std::size_t before = to.heard.count(from_name);
  EXPECT_TRUE(until([&] { return bool(from.port.send(to_name, {"served", {made_bytes(1, 100 * kKiB)}})); }));
  EXPECT_TRUE(until([&] { return to.heard.count(from_name) > before; }));
}

/// Nothing of what is no parcel.
inline std::optional<BulkParcel> parcel_of(std::vector<zmq::message_t> parts) {
  auto decoded = decode(frames_of(std::move(parts)), {}, false);
  if (auto* parcel = std::get_if<BulkParcel>(&decoded)) return std::move(*parcel);
  return std::nullopt;
}

/// What the other side says at last.
template <class Raw>
std::optional<BulkEnd> last_word(Raw& raw) {
  while (const auto parcel = raw.hear()) {
    if (const auto* bye = std::get_if<BulkBye>(&*parcel)) return bye->why;
  }
  return std::nullopt;
}

/// A sender of the protocol that does what a test wants; the receiver dials it.
class RawSender {
 public:
  RawSender() : socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.bind("tcp://127.0.0.1:*");
  }
  BulkPeer peer(const std::string& name) const { return {name, socket_.get(zmq::sockopt::last_endpoint)}; }

  /// Waits for a receiver.
  BulkHello hear_hello() {
    const auto parcel = hear();
    return parcel && std::holds_alternative<BulkHello>(*parcel) ? std::get<BulkHello>(*parcel) : BulkHello{};
  }
  std::optional<BulkParcel> hear() {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts)) || parts.size() != 2) return std::nullopt;
    receiver_ = parts[0].to_string();
    parts.erase(parts.begin());
    return parcel_of(std::move(parts));
  }
  /// What the receiver says at last.
  std::optional<BulkEnd> hear_bye() { return last_word(*this); }
  void say(const Frames& frames) {
    socket_.send(zmq::buffer(receiver_), zmq::send_flags::sndmore);
    send_frames(socket_, frames);
  }
  void send(std::uint64_t number, const BulkMessage& message, bool checksums = true) {
    std::size_t begin = 0;
    say(encode_together({{number, message}}, begin, checksums));
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string receiver_;
};

/// A receiver that does what a test wants.
class RawReceiver {
 public:
  explicit RawReceiver(const std::string& endpoint) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.connect(endpoint);
  }
  void say(const Frames& frames) { send_frames(socket_, frames); }
  std::optional<BulkParcel> hear() {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts))) return std::nullopt;
    return parcel_of(std::move(parts));
  }
  std::optional<BulkEnd> hear_bye() { return last_word(*this); }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

inline BulkHello hello(const std::string& from) {
  return {.from = from, .to = "a", .incarnation = 5, .grant = {10 * kMiB, 10}, .limits = {}};
}

}  // namespace vigil::cluster::testing
