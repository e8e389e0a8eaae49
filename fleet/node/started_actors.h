// The actors of a node that is being started: all of them, or none.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/messages/messages.h"
#include "base/duration.h"

namespace vigil::fleet {

/// Those that are there, as long as not all are. Where the start of one throws, those before it run on, and
/// nobody tells them to end, while the end of the start would take from them what they use. Not thread-safe.
class StartedActors {
 public:
  /// The system outlives it.
  explicit StartedActors(caf::actor_system& system) : system_(system) {}

  /// What `spawn` spawns, which `stop` tells to end, and may wait for within a bound of its own. Throws what
  /// `spawn` throws; where there is no thread for it, std::runtime_error: one line with the name.
  template <class Spawn, class Stop>
  auto start(const std::string& name, const Spawn& spawn, Stop stop) {
    auto actor = spawned(name, spawn);
    started_.push_back({actor.address(), [actor, stop = std::move(stop)] { stop(actor); }});
    return actor;
  }
  template <class Spawn>
  auto start(const std::string& name, const Spawn& spawn) {
    return start(name, spawn, [](const auto& actor) { caf::anon_send(actor, actors::stop_atom_v); });
  }

  /// Ends them, the last first, each when those after it have ended. Each has its share of what is left of
  /// the time; who has not ended by then is killed, and not waited for. Whether all ended as they were told.
  bool end(base::Duration within);

 private:
  struct Started {
    caf::actor_addr actor;
    std::function<void()> stop;
  };

  template <class Spawn>
  static auto spawned(const std::string& name, const Spawn& spawn) {
    try {
      return spawn();
    } catch (const std::system_error& error) {
      throw std::runtime_error("the " + name + " cannot be started: " + error.what());
    }
  }

  caf::actor_system& system_;
  std::vector<Started> started_;
};

}  // namespace vigil::fleet
