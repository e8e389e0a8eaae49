// A client that speaks as much of ZMTP 3 as a test wants it to, over a plain socket.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vigil::cluster::testing {

inline std::string zmtp_greeting(const std::string& mechanism = "NULL") {
  std::string text("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12);
  text += mechanism + std::string(20 - mechanism.size(), '\0');
  return text + std::string(32, '\0');
}

/// `flags`: 1 if parts follow, 4 for a command.
inline std::string zmtp_frame(const std::string& body, unsigned flags = 0) {
  if (body.size() < 256) return std::string{static_cast<char>(flags), static_cast<char>(body.size())} + body;
  std::string frame{static_cast<char>(flags | 2U)};
  for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(body.size() >> shift);
  return frame + body;
}

inline std::string zmtp_ready(const std::string& socket_type) {
  return zmtp_frame(std::string("\5READY\13Socket-Type") + std::string("\0\0\0", 3) +
                        static_cast<char>(socket_type.size()) + socket_type,
                    4);
}

class RawPeer {
 public:
  explicit RawPeer(const std::string& endpoint, std::uint32_t from = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in own = address(from, 0);
    if (from != INADDR_LOOPBACK && ::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
      throw std::runtime_error("no such address");
    connect(endpoint);
  }
  /// Not connected yet.
  RawPeer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~RawPeer() {
    if (socket_ >= 0) ::close(socket_);
  }
  RawPeer(RawPeer&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void connect(const std::string& endpoint) const {
    const auto port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
    const sockaddr_in there = address(INADDR_LOOPBACK, port);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
      throw std::runtime_error("cannot connect");
  }

  int descriptor() const { return socket_; }

  /// How many bytes were sent; fewer when the other side has closed.
  std::size_t send(std::string_view bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
    return sent;
  }

  /// What has come, once something has; empty at the end of the stream or after `patience`.
  std::string receive(std::chrono::milliseconds patience = std::chrono::seconds(10)) const {
    pollfd readable{socket_, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(patience.count())) <= 0) return "";
    std::string text(1 << 16, '\0');
    const ssize_t count = ::recv(socket_, text.data(), text.size(), 0);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }

  /// Whether the other side closes within `patience`; what comes before is thrown away.
  bool closes(std::chrono::milliseconds patience = std::chrono::seconds(10)) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd readable{socket_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) <= 0) return false;
      std::string text(1 << 16, '\0');
      if (::recv(socket_, text.data(), text.size(), 0) <= 0) return true;
    }
  }

  /// Greets and waits until the server is ready.
  bool shake_hands(const std::string& socket_type) const {
    send(zmtp_greeting() + zmtp_ready(socket_type));
    std::string seen;
    while (seen.find("READY") == std::string::npos) {
      const std::string more = receive();
      if (more.empty()) return false;
      seen += more;
    }
    return true;
  }

 private:
  static sockaddr_in address(std::uint32_t host, std::uint16_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(port);
    result.sin_addr.s_addr = htonl(host);
    return result;
  }

  int socket_;
};

}  // namespace vigil::cluster::testing
