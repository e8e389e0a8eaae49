#include "engine/stream/pass_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace vigil::stream {

PassShares plan_pass(const PassLimits& limits, std::span<const std::int64_t> texts,
                     std::span<const WindowWork> windows) {
  PassShares shares;
  shares.texts = std::min(texts.size(), limits.texts);
  std::int64_t most = shares.texts > 0 ? std::min(limits.rows, limits.rows_with_texts) : limits.rows;
  std::int64_t used = std::accumulate(
      texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(shares.texts), std::int64_t{0});
  bool was_asked = true;
  for (std::size_t i = 0; i < windows.size() && shares.windows.size() < limits.windows; ++i) {
    if (was_asked && !windows[i].is_asked && used > 0) most = std::min(most, limits.rows_filled);
    was_asked = windows[i].is_asked;
    if (used >= most) break;
    WindowShare share{i, std::min(windows[i].rows, most - used), 0};
    used += share.rows;
    bool is_full = false;
    if (share.rows == windows[i].rows && (limits.asks_at_once || windows[i].rows == 0)) {
      for (const std::int64_t rows : windows[i].questions) {
        is_full = used > 0 && used + rows > most;
        if (is_full) break;
        used += rows;
        ++share.questions;
      }
    }
    if (share.rows > 0 || share.questions > 0) shares.windows.push_back(share);
    // What this one has left comes before the next one's.
    if (is_full || share.rows < windows[i].rows) break;
  }
  return shares;
}

}  // namespace vigil::stream
