// A socket of this machine for tests, to which somebody may connect, or may not.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace vigil::media {

/// Listens on a free port of this machine.
class Listener {
 public:
  /// `backlog`: 0 drops whoever comes.
  explicit Listener(int backlog = 1024) : socket_(open_socket()) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address_), size) != 0 || listen(socket_, backlog) != 0 ||
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    if (backlog > 0) return;
    // A full queue drops what comes, as an address does where nobody is.
    for (int& filler : fillers_) {
      filler = open_socket(SOCK_NONBLOCK);
      static_cast<void>(connect(filler, reinterpret_cast<sockaddr*>(&address_), size));
    }
  }
  ~Listener() {
    for (const int filler : fillers_) {
      if (filler >= 0) close(filler);
    }
    if (socket_ >= 0) close(socket_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const sockaddr_in& address() const { return address_; }

  /// Nobody listens there any more.
  void stop() { close(std::exchange(socket_, -1)); }

  std::string url(const std::string& scheme = "rtsp", const std::string& rest = "/live") const {
    return scheme + "://viewer:hunter2@127.0.0.1:" + std::to_string(ntohs(address_.sin_port)) + rest;
  }
  std::string shown(const std::string& scheme = "rtsp", const std::string& rest = "/live") const {
    return scheme + "://***@127.0.0.1:" + std::to_string(ntohs(address_.sin_port)) + rest;
  }

  /// Blocks until somebody connects.
  base::Descriptor accepted() const { return base::Descriptor(accept(socket_, nullptr, nullptr)); }

  /// Blocks until somebody connects and has said a line; sends `reply`, and hangs up. What was said.
  std::string serve(const std::string& reply) const {
    const int peer = accept(socket_, nullptr, nullptr);
    char text[4096];
    const ssize_t size = recv(peer, text, sizeof text, 0);
    static_cast<void>(send(peer, reply.data(), reply.size(), MSG_NOSIGNAL));
    close(peer);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  static int open_socket(int flags = 0) { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0); }

  int socket_;
  sockaddr_in address_{};
  int fillers_[3] = {-1, -1, -1};
};

}  // namespace vigil::media
