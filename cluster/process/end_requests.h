// What SIGTERM and SIGINT ask for.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace vigil::cluster {

/// The first request asks for an orderly end. A later one asks for an immediate end, but not if it comes so
/// soon that it is the same: programs that end others send signals in pairs, and to whole groups. Not
/// thread-safe.
class EndRequests {
 public:
  /// The clock has to outlive this.
  explicit EndRequests(const base::Clock& clock) : clock_(clock) {}

  enum class Meaning : std::uint8_t { finish, nothing, quit };

  /// A request arrived.
  Meaning take();

 private:
  const base::Clock& clock_;
  std::optional<base::Clock::TimePoint> first_;
};

}  // namespace vigil::cluster
