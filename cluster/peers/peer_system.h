// CAF's network between the nodes of a fleet, over connections that are known to be nodes'.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman_actor.hpp>

#include "cluster/peers/peer_sockets.h"

namespace vigil::cluster {

/// How a silent peer is noticed.
struct PeerHeartbeat {
  std::chrono::milliseconds interval{500};
  std::chrono::milliseconds timeout{3000};
};

/// To be called before the system is made. Gives the system an id of its own: CAF's is made of addresses of
/// the machine and a process number, which containers share (each has a process 1).
void use_peers(caf::actor_system_config& config, const PeerHeartbeat& heartbeat = {});

/// Publishes one actor, and finds those that others have published. Ends with the object, which has to go
/// before the system and before what it was given. Thread-safe.
class PeerSystem {
 public:
  PeerSystem(caf::actor_system& system, PeerSockets& sockets);
  ~PeerSystem();
  PeerSystem(const PeerSystem&) = delete;
  PeerSystem& operator=(const PeerSystem&) = delete;

  /// Who connects gets this actor. Returns where it really listens. Throws std::runtime_error.
  PeerAddress publish(const PeerAddress& address, const caf::strong_actor_ptr& actor,
                      std::set<std::string> interface);

  /// The actor that a node has published, or why there is none: one line. `done` runs on another thread.
  using Found = std::function<void(std::variant<caf::strong_actor_ptr, std::string>)>;
  void find(const PeerAddress& address, Found done);

 private:
  class Shelf;

  static void find(caf::actor_system& system, const std::shared_ptr<Shelf>& shelf,
                   const caf::io::middleman_actor& middleman, const PeerAddress& address, Found done,
                   bool may_repeat);

  caf::actor_system& system_;
  std::shared_ptr<Shelf> shelf_;
  caf::io::middleman_actor middleman_;
};

}  // namespace vigil::cluster
