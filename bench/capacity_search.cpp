#include "bench/capacity_search.h"

#include <algorithm>
#include <stdexcept>

namespace vigil::bench {

CapacitySearch::CapacitySearch(int start, int most) : start_(start), most_(most) {
  if (start < 1 || most < start)
    throw std::invalid_argument("a search begins with 1 to " + std::to_string(most) + ", not with " +
                                std::to_string(start));
}

std::optional<int> CapacitySearch::next() const {
  if (held_ == 0 && !failed_) return start_;
  if (!failed_) {
    if (held_ == most_) return std::nullopt;
    return std::min(2 * held_, most_);
  }
  if (*failed_ - held_ <= std::max(1, held_ / 16)) return std::nullopt;
  return (held_ + *failed_) / 2;
}

void CapacitySearch::tried(bool held) {
  const std::optional<int> number = next();
  if (!number) throw std::logic_error("the search is over");
  if (held) {
    held_ = *number;
  } else {
    failed_ = *number;
  }
}

}  // namespace vigil::bench
