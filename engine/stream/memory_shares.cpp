#include "engine/stream/memory_shares.h"

namespace vigil::stream {

void MemoryShares::divide(std::vector<std::int64_t> needs) {
  std::sort(needs.begin(), needs.end());
  level_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t left = budget_;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const std::int64_t share = left / static_cast<std::int64_t>(needs.size() - i);
    if (needs[i] > share) {
      level_ = share;
      left_ = 0;
      return;
    }
    left -= needs[i];
  }
  left_ = left;
}

}  // namespace vigil::stream
