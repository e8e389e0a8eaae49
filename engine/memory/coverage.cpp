#include "engine/memory/coverage.h"

#include <algorithm>

namespace vigil::memory {
namespace {

/// The parts of a range for which the same reason is told, ascending.
void explain(const history::WallRange& missing, std::span<const KnownGap> known, std::vector<KnownGap>& to) {
  std::vector<std::int64_t> edges{missing.from};
  for (const KnownGap& each : known) {
    if (!each.wall.meets(missing)) continue;
    if (each.wall.from > missing.from) edges.push_back(each.wall.from);
    if (each.wall.to < missing.to) edges.push_back(each.wall.to + 1);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const history::WallRange part{edges[i], i + 1 < edges.size() ? edges[i + 1] - 1 : missing.to};
    Gap why = Gap::down;
    for (const KnownGap& each : known)
      if (each.wall.meets(part)) why = std::max(why, each.why);
    const bool goes_on = !to.empty() && to.back().why == why && to.back().wall.to + 1 == part.from;
    if (goes_on) {
      to.back().wall.to = part.to;
    } else {
      to.push_back({part, why});
    }
  }
}

}  // namespace

Coverage cover(const history::WallRange& asked, std::span<const history::WallRange> remembered,
               std::span<const KnownGap> known, std::int64_t tolerance) {
  Coverage coverage;
  if (asked.to < asked.from) return coverage;
  std::vector<history::WallRange> there;
  for (const history::WallRange& each : remembered)
    if (each.from <= each.to) there.push_back(each);
  std::sort(there.begin(), there.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  // What lies before the range matters for what the tolerance bridges.
  std::vector<history::WallRange> joined;
  for (const history::WallRange& each : there) {
    if (!joined.empty() && each.from - 1 - joined.back().to <= tolerance) {
      joined.back().to = std::max(joined.back().to, each.to);
    } else {
      joined.push_back(each);
    }
  }
  std::int64_t at = asked.from;
  double missing = 0;
  const auto miss = [&](std::int64_t to) {
    if (to < at) return;
    explain({at, to}, known, coverage.gaps);
    missing += static_cast<double>(to - at) + 1;
  };
  for (const history::WallRange& each : joined) {
    if (each.to < at) continue;
    if (each.from > asked.to) break;
    miss(each.from - 1);
    at = std::max(at, each.to + 1);
  }
  miss(asked.to);
  coverage.share = 1 - missing / (static_cast<double>(asked.to - asked.from) + 1);
  return coverage;
}

}  // namespace vigil::memory
