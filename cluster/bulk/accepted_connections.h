// The connections that others have made to a ZeroMQ socket: how many there are, who has said nothing of use,
// and how one of them is closed. ZeroMQ tells their descriptors and bounds nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "cluster/bulk/unfinished_bytes.h"

namespace vigil::cluster {

/// Not thread-safe.
class AcceptedConnections {
 public:
  /// What has come by a descriptor, as bytes_received tells.
  using Received = std::function<std::optional<std::uint64_t>(int descriptor)>;

  /// Of a socket that listens at this port of TCP: so many at once at most, and so long for each to be
  /// welcomed; so many bytes of a message that has not come to its end.
  AcceptedConnections(std::uint16_t port, int most, base::Duration patience, std::uint64_t most_unfinished,
                      Received received = bytes_received)
      : port_(port),
        most_(most),
        patience_(patience),
        most_unfinished_(most_unfinished),
        received_(std::move(received)) {}

  void opened(int descriptor, base::Clock::TimePoint now);
  /// By which name it spoke, if it did and was not dismissed.
  std::optional<std::string> closed(int descriptor);

  /// A message has come from it; false if it was dismissed, or is closed already.
  bool speaks(const std::string& name, int descriptor, base::Clock::TimePoint now);
  bool knows(const std::string& name) const { return names_.contains(name); }
  void welcomed(const std::string& name);
  /// Closed then; what comes from it until then is thrown away.
  void dismiss(const std::string& name, base::Clock::TimePoint when);

  /// They belong to a socket that is gone.
  void forget();

  /// Closes those whose time has come, and those that send without end. When it has to be called again.
  base::Clock::TimePoint step(base::Clock::TimePoint now);
  /// Names of those that had spoken, and were closed since for sending without end.
  std::vector<std::string> take_overrun() { return std::exchange(overrun_, {}); }

  int open() const { return static_cast<int>(open_.size()); }
  /// Closed since there were too many, or since they were not welcomed in time.
  std::uint64_t displaced() const { return displaced_; }
  std::uint64_t expired() const { return expired_; }

 private:
  struct Connection {
    base::Clock::TimePoint since{};
    std::string name = {};
    bool welcomed = false;
    std::optional<base::Clock::TimePoint> cut_at = std::nullopt;
    /// Closed by us; it goes when ZeroMQ has seen it.
    bool cut = false;
    UnfinishedBytes unfinished = {};
  };

  /// `reset`: whoever has much to send would be left waiting for room otherwise.
  void cut(int descriptor, Connection& connection, bool reset = false) const;
  void look(base::Clock::TimePoint now);

  std::uint16_t port_;
  int most_;
  base::Duration patience_;
  std::uint64_t most_unfinished_;
  Received received_;
  base::Clock::TimePoint look_at_{};
  std::vector<std::string> overrun_;
  /// By descriptor, and the descriptors by name.
  std::map<int, Connection> open_;
  std::map<std::string, int> names_;
  /// That were closed last: what they said before may still come.
  std::deque<std::string> gone_;
  std::uint64_t displaced_ = 0;
  std::uint64_t expired_ = 0;
};

}  // namespace vigil::cluster
