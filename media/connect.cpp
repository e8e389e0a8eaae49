#include "media/connect.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace vigil::media {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How long an address has for itself.
constexpr milliseconds kHeadStart(250);
/// How often a wait looks whether it has been interrupted.
constexpr milliseconds kLook(50);

/// Sockets that are being connected, at once.
class Race {
 public:
  bool empty() const { return sockets_.empty(); }

  /// Why the last one that failed did.
  int error() const { return error_; }

  void add(const Address& address) {
    base::Descriptor socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const auto* const where = reinterpret_cast<const sockaddr*>(&address.bytes);
    if (!socket || (::connect(socket.number(), where, address.size) != 0 && errno != EINPROGRESS)) {
      error_ = errno;
      return;
    }
    waiting_.push_back({socket.number(), POLLOUT, 0});
    sockets_.push_back(std::move(socket));
  }

  /// Waits; the one that is connected, if any is.
  base::Descriptor wait(milliseconds time) {
    if (poll(waiting_.data(), waiting_.size(), static_cast<int>(time.count())) <= 0)
      return base::Descriptor();
    for (std::size_t i = 0; i < waiting_.size();) {
      if (waiting_[i].revents == 0) {
        ++i;
        continue;
      }
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(waiting_[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
      const auto at = static_cast<std::ptrdiff_t>(i);
      base::Descriptor socket = std::move(sockets_[i]);
      sockets_.erase(sockets_.begin() + at);
      waiting_.erase(waiting_.begin() + at);
      if (error == 0) return socket;
      error_ = error;
    }
    return base::Descriptor();
  }

 private:
  /// Of the same sockets, in the same order.
  std::vector<base::Descriptor> sockets_;
  std::vector<pollfd> waiting_;
  int error_ = 0;
};

}  // namespace

Resolved resolve(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  Resolved resolved;
  resolved.error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  resolved.system_error = errno;
  if (resolved.error != 0) return resolved;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    Address address;
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    resolved.addresses.push_back(address);
  }
  freeaddrinfo(list);
  return resolved;
}

base::Descriptor connected(std::span<const Address> addresses, Interrupt& interrupt) {
  Race race;
  auto next = addresses.begin();
  Clock::time_point due = Clock::now();
  while (!interrupt.expired()) {
    while (next != addresses.end() && (race.empty() || Clock::now() >= due)) {
      race.add(*next++);
      due = Clock::now() + kHeadStart;
    }
    if (race.empty()) throw std::runtime_error(std::generic_category().message(race.error()));
    const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
    base::Descriptor socket =
        race.wait(next == addresses.end() ? kLook : std::clamp(left, milliseconds::zero(), kLook));
    if (!socket) continue;
    const int on = 1;
    setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  throw std::runtime_error("no connection in time");
}

}  // namespace vigil::media
