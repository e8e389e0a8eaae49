#include "cluster/bulk/accepted_connections.h"

#include <algorithm>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace vigil::cluster {
namespace {

// Names of connections that are gone, which are remembered.
constexpr std::size_t kGone = 256;

/// The port of TCP at our end; 0 if it is no socket of TCP, or not connected.
std::uint16_t own_port(int socket) {
  sockaddr_storage address{};
  sockaddr_storage other{};
  socklen_t size = sizeof address;
  socklen_t other_size = sizeof other;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&other), &other_size) != 0)
    return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  return 0;
}

}  // namespace

// ZeroMQ owns the descriptor and may have closed it, so that its number is another's by now. What was found
// under the number is held, looked at, and closed only if it is a connection of this listener.
void AcceptedConnections::cut(int descriptor, Connection& connection, bool reset) const {
  connection.cut = true;
  const base::Descriptor held(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!held || own_port(held.number()) != port_) return;
  const linger at_once{1, 0};
  if (reset) ::setsockopt(held.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::shutdown(held.number(), SHUT_RDWR);
}

void AcceptedConnections::opened(int descriptor, base::Clock::TimePoint now) {
  closed(descriptor);
  open_[descriptor] = {.since = now};
  const auto standing =
      std::count_if(open_.begin(), open_.end(), [](const auto& each) { return !each.second.cut; });
  if (standing <= most_) return;
  // The oldest of those that are nobody yet, which may be this one.
  const auto rank = [](const auto& each) {
    return std::pair(each.second.cut || each.second.welcomed, each.second.since);
  };
  const auto oldest = std::min_element(open_.begin(), open_.end(),
                                       [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  ++displaced_;
  const bool nobody = !oldest->second.cut && !oldest->second.welcomed;
  cut(nobody ? oldest->first : descriptor, nobody ? oldest->second : open_[descriptor]);
}

std::optional<std::string> AcceptedConnections::closed(int descriptor) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return std::nullopt;
  const std::string name = found->second.name;
  const bool dismissed = found->second.cut || found->second.cut_at;
  open_.erase(found);
  if (name.empty()) return std::nullopt;
  names_.erase(name);
  gone_.push_back(name);
  if (gone_.size() > kGone) gone_.pop_front();
  return dismissed ? std::nullopt : std::optional(name);
}

bool AcceptedConnections::speaks(const std::string& name, int descriptor, base::Clock::TimePoint now) {
  const auto known = names_.find(name);
  if (known != names_.end()) {
    Connection& connection = open_.at(known->second);
    const bool is_heard = !connection.cut && !connection.cut_at;
    // Of what is thrown away, all counts.
    if (is_heard) connection.unfinished.heard();
    return is_heard;
  }
  const auto found = open_.find(descriptor);
  if (found == open_.end() || std::find(gone_.begin(), gone_.end(), name) != gone_.end()) return false;
  Connection& connection = found->second;
  if (!connection.name.empty()) {
    // What one left behind that had this descriptor before was taken for its word.
    names_.erase(connection.name);
    connection = Connection{.since = now};
  }
  connection.name = name;
  connection.unfinished.heard();
  names_[name] = descriptor;
  return !connection.cut;
}

void AcceptedConnections::welcomed(const std::string& name) {
  const auto found = names_.find(name);
  if (found != names_.end()) open_.at(found->second).welcomed = true;
}

void AcceptedConnections::dismiss(const std::string& name, base::Clock::TimePoint when) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  Connection& connection = open_.at(found->second);
  connection.welcomed = false;
  if (!connection.cut_at) connection.cut_at = when;
}

void AcceptedConnections::forget() {
  open_.clear();
  names_.clear();
}

void AcceptedConnections::look(base::Clock::TimePoint now) {
  if (now < look_at_) return;
  look_at_ = now + kBetweenLooks;
  for (auto& [descriptor, connection] : open_) {
    if (connection.cut) continue;
    const auto received = received_(descriptor);
    if (!received || connection.unfinished.look(*received, most_unfinished_)) continue;
    cut(descriptor, connection, true);
    if (!connection.name.empty()) overrun_.push_back(connection.name);
  }
}

base::Clock::TimePoint AcceptedConnections::step(base::Clock::TimePoint now) {
  look(now);
  auto next = open_.empty() ? base::Clock::TimePoint::max() : look_at_;
  for (auto& [descriptor, connection] : open_) {
    if (connection.cut || connection.welcomed) continue;
    const auto until = connection.cut_at.value_or(connection.since + patience_);
    if (now < until) {
      next = std::min(next, until);
      continue;
    }
    if (!connection.cut_at) ++expired_;
    cut(descriptor, connection);
  }
  return next;
}

}  // namespace vigil::cluster
