// A way to a server that is longer than it should be.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace vigil::cluster::testing {

/// Listens on a port of this machine and hands all bytes on to another one, each way so much later. Has a
/// thread, which ends with the object.
class SlowProxy {
 public:
  SlowProxy(const std::string& endpoint, std::chrono::milliseconds delay)
      : to_(address(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)))),
        delay_(delay),
        listener_(socket()),
        end_(::eventfd(0, EFD_CLOEXEC)) {
    sockaddr_in own = address(0);
    socklen_t size = sizeof own;
    if (::bind(listener_.number(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::listen(listener_.number(), 16) != 0 ||
        ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(own.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~SlowProxy() {
    ::eventfd_write(end_.number(), 1);
    thread_.join();
  }
  SlowProxy(const SlowProxy&) = delete;
  SlowProxy& operator=(const SlowProxy&) = delete;

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  /// How many have connected.
  std::size_t connections() const { return connections_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Pair {
    std::array<base::Descriptor, 2> sides;
    /// To the other side, and when.
    std::array<std::deque<std::pair<Clock::time_point, std::string>>, 2> late = {};
    bool over = false;
  };

  static sockaddr_in address(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  static base::Descriptor socket() {
    return base::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }

  void run() {
    for (;;) {
      std::vector<pollfd> waits = {{end_.number(), POLLIN, 0}, {listener_.number(), POLLIN, 0}};
      for (const Pair& pair : pairs_)
        for (const base::Descriptor& side : pair.sides) waits.push_back({side.number(), POLLIN, 0});
      ::poll(waits.data(), waits.size(), 5);
      if (waits[0].revents != 0) return;
      std::size_t at = 2;
      for (Pair& pair : pairs_) {
        for (const std::size_t side : {0U, 1U})
          if (waits[at++].revents != 0) read(pair, side);
        for (const std::size_t side : {0U, 1U}) write(pair, side);
      }
      pairs_.remove_if([](const Pair& pair) { return pair.over; });
      if (waits[1].revents != 0) accept();
    }
  }

  void accept() {
    Pair pair{{base::Descriptor(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC)), socket()}};
    ++connections_;
    if (::connect(pair.sides[1].number(), reinterpret_cast<const sockaddr*>(&to_), sizeof to_) == 0)
      pairs_.push_back(std::move(pair));
  }

  void read(Pair& pair, std::size_t side) const {
    std::array<char, 65536> bytes;
    const ssize_t size = ::recv(pair.sides[side].number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0)
      pair.late[side].emplace_back(Clock::now() + delay_,
                                   std::string(bytes.data(), static_cast<std::size_t>(size)));
    else
      pair.over = true;
  }

  static void write(Pair& pair, std::size_t side) {
    auto& late = pair.late[side];
    for (; !late.empty() && late.front().first <= Clock::now(); late.pop_front()) {
      const std::string& bytes = late.front().second;
      ::send(pair.sides[1 - side].number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }

  const sockaddr_in to_;
  const std::chrono::milliseconds delay_;
  const base::Descriptor listener_;
  const base::Descriptor end_;
  int port_ = 0;
  std::list<Pair> pairs_;
  std::atomic<std::size_t> connections_{0};
  std::thread thread_;
};

}  // namespace vigil::cluster::testing
