// Clients and servers of TCP that do just what a test tells them.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vigil::cluster::testing {

struct Unconnected {};

/// A connection to a port of this machine. Whatever it waits for longer than 20 s is an error.
class RawClient {
 public:
  explicit RawClient(Unconnected) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (socket_ < 0) throw std::runtime_error("no socket");
  }
  explicit RawClient(int port) : RawClient(Unconnected{}) { connect(port); }
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), read_(std::move(other.read_)) {}
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() { close(); }

  void connect(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect");
  }

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  /// False if the other side does not take it any more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      pollfd ready{socket_, POLLOUT, 0};
      if (::poll(&ready, 1, 20'000) != 1) return false;
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  bool readable_within(std::chrono::milliseconds patience) const {
    pollfd ready{socket_, POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(patience.count())) == 1;
  }

  /// What comes until the connection ends, without what was taken before.
  std::string rest() {
    while (more()) {
    }
    return std::exchange(read_, "");
  }

  /// What comes until `mark`, that included.
  std::string until(std::string_view mark) {
    while (read_.find(mark) == std::string::npos)
      if (!more()) throw std::runtime_error("the connection ended behind: " + read_);
    return take(read_.find(mark) + mark.size());
  }

  /// One answer, with a body of the length that it tells.
  std::string answer() {
    std::string head = until("\r\n\r\n");
    const std::size_t length = head.find("Content-Length: ");
    if (length == std::string::npos) throw std::runtime_error("no length: " + head);
    const std::size_t body = std::stoul(head.substr(length + 16));
    while (read_.size() < body)
      if (!more()) throw std::runtime_error("the connection ended within a body");
    return head + take(body);
  }

 private:
  bool more() {
    char bytes[4096];
    if (!readable_within(std::chrono::seconds(20)))
      throw std::runtime_error("nothing comes; until now: " + read_);
    const ssize_t size = ::recv(socket_, bytes, sizeof bytes, 0);
    if (size > 0) read_.append(bytes, static_cast<std::size_t>(size));
    return size > 0;
  }

  std::string take(std::size_t size) {
    std::string taken = read_.substr(0, size);
    read_.erase(0, size);
    return taken;
  }

  int socket_ = -1;
  std::string read_;
};

/// Lets clients connect and says nothing.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 8) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  int port() const { return port_; }

 private:
  int socket_ = -1;
  int port_ = 0;
};

/// The descriptors of this process that are a server's ends of connections to `port`.
inline std::vector<int> accepted_sockets(int port) {
  std::vector<int> found;
  for (int fd = 3; fd < 4096; ++fd) {
    sockaddr_in own{};
    sockaddr_in peer{};
    socklen_t size = sizeof own;
    socklen_t peer_size = sizeof peer;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 && own.sin_family == AF_INET &&
        ntohs(own.sin_port) == port && ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0)
      found.push_back(fd);
  }
  return found;
}

}  // namespace vigil::cluster::testing
