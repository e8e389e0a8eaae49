// What a new maker learns of several gateways at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/alerts/books.h"
#include "fleet/messages/event_messages.h"

namespace vigil::fleet {

struct MergedBooks {
  actors::SeriesBooks books;
  /// What some have and others have not, in order, copies of one event together: to be offered to all first.
  std::vector<std::vector<ShippedEvent>> units;
};

/// The union of the answers to one claim of a series. What was staged and does not follow what is before it
/// is nobody's: it cannot have been committed anywhere.
MergedBooks merge_books(const std::string& series, std::uint64_t fence,
                        const std::vector<ClaimAnswer>& answers);

}  // namespace vigil::fleet
