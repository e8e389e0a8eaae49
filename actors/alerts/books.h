// What gateways have of a series: what one maker after the other numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// The answer to a claim: where its new maker goes on. Plain; whoever holds it shares it.
struct SeriesBooks {
  /// The camera's name; empty: what a process tells of itself.
  std::string camera;
  /// Under which it was claimed, and the highest before that; 0 if there was none.
  std::uint64_t fence = 0;
  std::uint64_t previous = 0;
  /// From this fence on nobody but this node has claimed it, and nothing that it made was dropped on its way.
  std::uint64_t since = 0;
  /// The last event of each of its topics, committed or staged: what is staged will be committed before what
  /// the new maker tells. Positions mean nothing. A topic that is missing never had one.
  std::vector<OutboxEvent> last;
  /// `episode_note` of what is open, or whose evidence is still to be told.
  std::vector<OutboxNote> notes;
};
using SeriesBooksPtr = std::shared_ptr<const SeriesBooks>;

}  // namespace vigil::actors
