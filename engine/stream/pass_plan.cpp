#include "engine/stream/pass_plan.h"

#include <algorithm>

namespace vigil::stream {

PassShares plan_pass(const PassLimits& limits, std::size_t texts, std::span<const WindowWork> windows) {
  PassShares shares;
  shares.texts = std::min(texts, limits.texts);
  const std::int64_t most = shares.texts > 0 ? limits.rows_beside_texts : limits.rows;
  auto used = static_cast<std::int64_t>(shares.texts);
  for (std::size_t i = 0; i < windows.size() && used < most && shares.windows.size() < limits.windows; ++i) {
    WindowShare share{i, std::min(windows[i].rows, most - used), 0};
    used += share.rows;
    if (share.rows == windows[i].rows && (limits.asks_at_once || windows[i].rows == 0)) {
      for (const std::int64_t rows : windows[i].questions) {
        if (used > 0 && used + rows > most) break;
        used += rows;
        ++share.questions;
      }
    }
    if (share.rows > 0 || share.questions > 0) shares.windows.push_back(share);
    // What this one has left comes before the next one's.
    if (share.rows < windows[i].rows || share.questions < windows[i].questions.size()) {
      if (limits.asks_at_once) break;
    }
  }
  return shares;
}

}  // namespace vigil::stream
