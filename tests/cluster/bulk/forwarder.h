// A piece of wire between a server of TCP and its clients, which can be cut, stopped and disturbed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "cluster/sockets/bell.h"

namespace vigil::cluster::testing {

/// Thread-safe; has a thread of its own.
class Forwarder {
 public:
  Forwarder() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = loopback(0);
    socklen_t size = sizeof own;
    if (::bind(listener_.number(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::listen(listener_.number(), 64) != 0 ||
        ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
      throw std::runtime_error("no forwarder");
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~Forwarder() {
    change([this] { stopping_ = true; });
    thread_.join();
  }
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  const std::string& endpoint() const { return endpoint_; }

  /// Where it leads from now on; nowhere at first.
  void lead_to(const std::string& endpoint) {
    change([&] { port_ = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))); });
  }
  /// Closes all connections.
  void cut() {
    change([this] { cut_ = true; });
  }
  /// Nothing moves and nothing closes, as long as this holds: the cable is out. Connections that were there
  /// stay dead.
  void stall(bool stalled) {
    change([&] { stalled_ = stalled; });
  }
  /// Changes one byte of what the server sends, after that many more.
  void damage(std::int64_t after) {
    change([&] { damage_after_ = after; });
  }

 private:
  struct Link {
    base::Descriptor client;
    base::Descriptor server;
    bool dead = false;
  };

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(port);
    result.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return result;
  }

  template <class F>
  void change(const F& f) {
    {
      const std::lock_guard lock(mutex_);
      f();
    }
    bell_.ring();
  }

  void run() {
    for (;;) {
      std::vector<pollfd> items = {{bell_.descriptor(), POLLIN, 0}, {listener_.number(), POLLIN, 0}};
      std::vector<std::pair<Link*, bool>> of;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        if (cut_) links_.clear();
        cut_ = false;
        for (Link& link : links_) {
          if (stalled_) link.dead = true;
          if (link.dead) continue;
          items.push_back({link.client.number(), POLLIN, 0});
          of.emplace_back(&link, true);
          items.push_back({link.server.number(), POLLIN, 0});
          of.emplace_back(&link, false);
        }
      }
      ::poll(items.data(), items.size(), -1);
      bell_.silence();
      std::vector<Link*> closed;
      for (std::size_t i = 0; i < of.size(); ++i) {
        if (items[i + 2].revents != 0 && !pass(*of[i].first, of[i].second)) closed.push_back(of[i].first);
      }
      links_.remove_if(
          [&](const Link& each) { return std::find(closed.begin(), closed.end(), &each) != closed.end(); });
      if (items[1].revents != 0) accept();
    }
  }

  void accept() {
    base::Descriptor client(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    base::Descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::lock_guard lock(mutex_);
    const sockaddr_in there = loopback(port_);
    const bool leads = port_ != 0 && ::connect(server.number(), reinterpret_cast<const sockaddr*>(&there),
                                               sizeof there) == 0;
    if (leads) links_.push_back({std::move(client), std::move(server), stalled_});
  }

  bool pass(Link& link, bool from_client) {
    const int from = from_client ? link.client.number() : link.server.number();
    const int to = from_client ? link.server.number() : link.client.number();
    const ssize_t size = ::recv(from, buffer_.data(), buffer_.size(), 0);
    if (size <= 0) return false;
    if (!from_client) disturb(size);
    for (ssize_t sent = 0; sent < size;) {
      // Whoever does not read for so long holds up the others.
      const timeval patience{10, 0};
      ::setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      const ssize_t count =
          ::send(to, buffer_.data() + sent, static_cast<std::size_t>(size - sent), MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += count;
    }
    return true;
  }

  void disturb(ssize_t size) {
    const std::lock_guard lock(mutex_);
    if (damage_after_ < 0) return;
    if (damage_after_ < size) {
      buffer_[static_cast<std::size_t>(damage_after_)] ^= 0x10;
      damage_after_ = -1;
    } else {
      damage_after_ -= size;
    }
  }

  base::Descriptor listener_;
  std::string endpoint_;
  Bell bell_;
  std::mutex mutex_;
  std::uint16_t port_ = 0;
  bool stopping_ = false;
  bool cut_ = false;
  bool stalled_ = false;
  std::int64_t damage_after_ = -1;
  std::list<Link> links_;
  std::array<char, 64 << 10> buffer_{};
  std::thread thread_;
};

}  // namespace vigil::cluster::testing
