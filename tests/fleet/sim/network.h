// What lies between hosts: connections that keep their order, and single messages that do not.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/fleet/sim/world.h"

namespace vigil::fleet::sim {

class Network;

/// As a connection of TCP whose sides send heartbeats: what is sent on it arrives in order, or the connection
/// ends, of which each side hears at its own time. Side 0 has dialed.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// What arrives: is given `user` of the side where it does.
  using Parcel = std::function<void(void* user)>;

  Connection(Network& network, Host& dialer, Host& acceptor);

  void send(int from, Parcel parcel);
  /// The other side hears of it when it can.
  void close(int side);
  bool is_open(int side) const { return sides_[index(side)].open; }
  Host& host(int side) const { return *sides_[index(side)].host; }
  std::uint64_t number() const { return number_; }

  /// Of a side, by its owner: who gets what arrives, and who hears of the end.
  void own(int side, void* user, std::function<void()> closed);

 private:
  friend class Network;
  struct Side {
    Host* host = nullptr;
    std::uint64_t life = 0;
    bool open = true;
    void* user = nullptr;
    std::function<void()> closed;
    // Of what goes to this side.
    Micros last{0};
    std::deque<Parcel> held;
    /// Since when it has heard nothing.
    std::optional<Micros> silent;
  };

  static std::size_t index(int side) { return static_cast<std::size_t>(side); }
  void deliver(int to, Parcel parcel);
  /// Without a word to the other side.
  void end(int side);
  void fall_silent(int to);
  void speak_again(int to);

  Network& network_;
  const std::uint64_t number_;
  std::array<Side, 2> sides_;
};

using ConnectionPtr = std::shared_ptr<Connection>;

class Network {
 public:
  struct Options {
    Micros least{150};
    Micros most{3000};
    /// After so long without a sign of life, a side gives a connection up.
    Micros silence{3'500'000};
    Micros dialing{5'000'000};
    /// A mistake: a connection does not keep its order.
    bool reorders = false;
  };

  explicit Network(World& world) : Network(world, Options()) {}
  Network(World& world, Options options);

  /// One message by itself: later, in any order, or never if the way is cut.
  void post(Host& from, Host& to, std::function<void()> run, Point point = Point::message);

  /// Part of what goes from one host to another in order, and waits while the way is cut.
  void stream(Host& from, Host& to, std::function<void()> run);

  /// `done` runs on the dialer's host: null if nobody answers.
  void dial(Host& from, Host& to, std::function<void(ConnectionPtr)> done);
  /// Who takes connections on a host; null if nobody does.
  void listen(Host& host, std::function<void(const ConnectionPtr&)> accept) {
    listeners_[host.id] = std::move(accept);
  }

  /// One way; as often as it was cut it has to be mended.
  void cut(Host& from, Host& to);
  void mend(Host& from, Host& to);
  bool is_cut(const Host& from, const Host& to) const;
  /// Of what is sent from now on.
  void delay(Host& from, Host& to, Micros by) { ways_[{from.id, to.id}].delay = by; }

  World& world() { return world_; }
  const Options& options() const { return options_; }

 private:
  friend class Connection;
  struct Way {
    int cuts = 0;
    Micros delay{0};
    // Of streams.
    Micros last{0};
    std::deque<std::function<void()>> held;
  };

  Micros latency(const Host& from, const Host& to);
  void crashed(Host& host, bool power_loss);
  template <class F>
  void for_all(F piece);

  World& world_;
  const Options options_;
  std::map<std::pair<int, int>, Way> ways_;
  std::map<int, std::function<void(const ConnectionPtr&)>> listeners_;
  std::vector<ConnectionPtr> connections_;
  std::uint64_t numbers_ = 0;
};

}  // namespace vigil::fleet::sim
