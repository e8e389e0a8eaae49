#include "engine/prune/stream_groups.h"

#include <algorithm>
#include <cstddef>

namespace vigil::prune {
namespace {

/// Patches for which a group that changed stays. (docs/experiments/2026-11-25-what-the-tower-remembers.md has
/// answers for others.)
constexpr std::int32_t kLately = 4;
/// Of so many patches one is kept whole.
constexpr std::int32_t kWholeEvery = 4;

}  // namespace

base::GridMask StreamGroups::keep(const base::GridMask& changed) {
  quiet_.resize(static_cast<std::size_t>(changed.cells()), kLately + 1);
  const bool is_whole = changed.has_all();
  base::GridMask kept = changed;
  for (std::size_t i = 0; i < quiet_.size(); ++i) {
    const auto group = static_cast<std::int64_t>(i);
    // A whole picture says of no group that it moved.
    quiet_[i] = !is_whole && changed.has(group) ? 0 : std::min(quiet_[i] + 1, kLately + 1);
    if (quiet_[i] <= kLately) kept.add(group);
  }
  if (++since_whole_ < kWholeEvery && !is_whole) return kept;
  since_whole_ = 0;
  return base::GridMask::all(changed.height(), changed.width());
}

}  // namespace vigil::prune
