// What the alerts actor sees of the topics: `services/` puts a socket behind it.
#pragma once

#include <cstdint>
#include <string>

namespace vigil::actors {

/// One owner at a time; not thread-safe.
class Publisher {
 public:
  virtual ~Publisher() = default;

  /// Hands an event over. False if it cannot be taken now; then it is offered again later.
  virtual bool publish(const std::string& topic, std::uint64_t sequence, const std::string& body) = 0;

  /// Sends new subscribers the last event of their topics. To be called regularly.
  virtual void serve() = 0;

  /// How often a subscriber that reads too slowly began to miss events since the last call.
  virtual std::uint64_t take_dropped() = 0;
};

}  // namespace vigil::actors
