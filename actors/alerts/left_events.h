// What a process before this one has left in an outbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// Events that were there, and not acknowledged, when this was made: nobody publishes them before it is known
/// of their series what they are worth. Where they are is known here by series, so that a backlog is not read
/// again for each of them. Not thread-safe.
class LeftEvents {
 public:
  LeftEvents() = default;
  /// Throws OutboxError.
  explicit LeftEvents(const Outbox& outbox);

  /// The position up to which there are any; 0: there were none.
  std::uint64_t end() const { return end_; }
  bool contains(const std::string& series) const { return places_.contains(series); }
  std::vector<std::string> series() const;

  /// Those of a series, in the order of their positions. Throws OutboxError.
  std::vector<OutboxEvent> read(const std::string& series, const Outbox& outbox) const;
  /// They are known here no more. Returns their positions.
  std::vector<std::uint64_t> take(const std::string& series);

  struct Old {
    std::map<std::string, std::size_t> by_series;
    /// Of these, and of those on topics that are none of a series.
    std::vector<std::uint64_t> positions;
  };
  /// As `take`, of those from before this time.
  Old take_before(base::Clock::WallTime time);

 private:
  struct Place {
    std::uint64_t position = 0;
    base::Clock::WallTime time;
  };
  std::uint64_t end_ = 0;
  std::map<std::string, std::vector<Place>> places_;
  /// On topics that are none of a series.
  std::vector<Place> others_;
};

}  // namespace vigil::actors
