// What of a page is as young as its camera keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/kv/history/page_info.h"

namespace vigil::memory {

/// From this patch of the page on, all began at this time or later; as many as it has: none did.
inline std::size_t first_kept(const history::PageInfo& page, std::int64_t from) {
  std::size_t first = page.patches.size();
  while (first > 0 && page.patches[first - 1].wall.from >= from) --first;
  return first;
}

/// When that was seen; nothing: none of it is kept.
inline std::optional<history::WallRange> kept_wall(const history::PageInfo& page, std::int64_t from) {
  const std::size_t first = first_kept(page, from);
  if (first == page.patches.size()) return std::nullopt;
  return history::WallRange{page.patches[first].wall.from, history::wall_of(page).to};
}

}  // namespace vigil::memory
