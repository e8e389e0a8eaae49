// Which texts were asked for by whom, until they are told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "actors/messages/reports.h"
#include "base/clock.h"
#include "engine/stream/ids.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

/// Not thread-safe.
class Explanations {
 public:
  /// Somebody asks for a text, by this name.
  void ask(const stream::WindowId& window, std::size_t rule, std::uint64_t ticket) {
    tickets_[{window, rule}] = ticket;
  }

  struct Told {
    Explanation explanation;
    std::int64_t tokens = 0;
    /// Tokens behind the answer's first one, and the seconds that they took.
    std::int64_t later = 0;
    double seconds = 0;
  };
  /// A text has ended, or cannot, at this time.
  Told tell(const stream::DeskNews::Told& told, base::Clock::TimePoint now);

  /// There is no such text.
  static Explanation gone(std::uint64_t ticket) { return {ticket, "", "the window has left the cache"}; }

 private:
  std::map<std::pair<stream::WindowId, std::size_t>, std::uint64_t> tickets_;
};

}  // namespace vigil::actors
